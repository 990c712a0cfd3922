{{/* What all pods have: called with the root and the values of one container. */}}
{{- define "tieredctl.pod" -}}
{{- $ := .root -}}
serviceAccountName: {{ $.Release.Name }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  seccompProfile:
    type: RuntimeDefault
containers:
  - name: {{ .name }}
    image: "{{ $.Values.image }}:{{ $.Chart.AppVersion }}"
    args: {{ toJson .args }}
    env:
      - name: TIEREDCTL_BOOTSTRAP_SERVER
        value: {{ $.Values.bootstrapServer | quote }}
      - name: TIEREDCTL_STORE
        value: {{ $.Values.store | quote }}
      - name: TIEREDCTL_LAYOUT
        value: {{ $.Values.layout | quote }}
      - name: HOME
        value: /tmp
      {{- if $.Values.clientSecret }}
      - name: TIEREDCTL_COMMAND_CONFIG
        value: /etc/tieredctl/client.properties
      {{- end }}
      {{- range $name, $value := $.Values.env }}
      - name: {{ $name }}
        value: {{ $value | quote }}
      {{- end }}
    {{- if .port }}
    ports:
      - name: metrics
        containerPort: {{ .port }}
    readinessProbe:
      httpGet:
        path: /metrics
        port: metrics
    {{- end }}
    {{- with $.Values.resources }}
    resources: {{ toJson . }}
    {{- end }}
    securityContext:
      allowPrivilegeEscalation: false
      readOnlyRootFilesystem: true
      capabilities:
        drop: [ALL]
    volumeMounts:
      - name: results
        mountPath: /results
      - name: tmp
        mountPath: /tmp
      {{- if $.Values.clientSecret }}
      - name: client
        mountPath: /etc/tieredctl
        readOnly: true
      {{- end }}
volumes:
  - name: results
    persistentVolumeClaim:
      claimName: {{ $.Release.Name }}-results
  - name: tmp
    emptyDir: {}
  {{- if $.Values.clientSecret }}
  - name: client
    secret:
      secretName: {{ $.Values.clientSecret }}
  {{- end }}
{{- end -}}
