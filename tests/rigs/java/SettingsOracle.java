import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.server.common.MetadataVersion;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.AccessibleObject;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * Kafka's own definitions of settings, and what it refuses by them.
 *
 * <p>Reads lines: `definitions` asks for all of a release, `values KIND JSON` why Kafka refuses each of these pairs of
 * name and value of one kind (broker, topic, metadataTopic). Each is answered with one line of JSON.
 */
public final class SettingsOracle {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String STORAGE = "org.apache.kafka.server.log.remote.metadata.storage.";

    private SettingsOracle() {
    }

    public static void main(String[] arguments) throws Exception {
        Map<String, ConfigDef> kinds = new LinkedHashMap<>();
        kinds.put("broker", definition("kafka.server.KafkaConfig"));
        kinds.put("topic", definition("org.apache.kafka.storage.internals.log.LogConfig"));
        kinds.put("metadataTopic", definition(STORAGE + "TopicBasedRemoteLogMetadataManagerConfig"));
        kinds.put("admin", AdminClientConfig.configDef());
        kinds.put("consumer", ConsumerConfig.configDef());
        kinds.put("producer", ProducerConfig.configDef());
        var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ", 3);
            Object answer = words[0].equals("definitions") ? all(kinds) : refusals(kinds.get(words[1]), JSON.readValue(words[2], String[][].class));
            System.out.println(JSON.writeValueAsString(answer));
        }
    }

    private static ObjectNode all(Map<String, ConfigDef> kinds) throws Exception {
        ObjectNode all = JSON.createObjectNode();
        kinds.forEach((kind, definition) -> all.set(kind, described(definition)));
        ObjectNode levels = all.putObject("metadataVersions");
        for (MetadataVersion version : MetadataVersion.values()) {
            levels.put(version.toString(), version.featureLevel());
        }
        ArrayNode dynamic = all.putArray("dynamic");
        dynamicNames().stream().map(String::valueOf).sorted().forEach(dynamic::add);
        return all;
    }

    private static ObjectNode described(ConfigDef definition) {
        ObjectNode described = JSON.createObjectNode();
        new TreeMap<>(definition.configKeys()).forEach((name, key) -> {
            ObjectNode one = described.putObject(name);
            one.put("type", key.type.name());
            one.put("default", key.hasDefault() ? ConfigDef.convertToString(key.defaultValue, key.type) : null);
            one.set("demand", demand(key.validator));
        });
        return described;
    }

    /** What a validator demands; null where it demands nothing that its fields or its text tell. */
    private static ObjectNode demand(ConfigDef.Validator validator) {
        ObjectNode demand = JSON.createObjectNode();
        if (validator instanceof ConfigDef.Range) {
            demand.set("least", JSON.valueToTree(field(validator, "min")));
            demand.set("greatest", JSON.valueToTree(field(validator, "max")));
        } else if (validator instanceof ConfigDef.ValidString || validator instanceof ConfigDef.CaseInsensitiveValidString) {
            demand.set("oneOf", JSON.valueToTree(field(validator, "validStrings")));
            demand.put("anyCase", validator instanceof ConfigDef.CaseInsensitiveValidString);
        } else if (validator instanceof ConfigDef.ValidList) {
            demand.set("oneOf", JSON.valueToTree(field(field(validator, "validString"), "validStrings")));
            Object isEmptyAllowed = field(validator, "isEmptyAllowed");
            demand.put("notEmpty", Boolean.FALSE.equals(isEmptyAllowed));
            demand.put("noBlanks", isEmptyAllowed != null);
        } else if (validator instanceof ConfigDef.NonEmptyString) {
            demand.put("notEmpty", true);
        } else if (validator != null) {
            demand.put("text", validator.toString());
        }
        return demand.isEmpty() ? null : demand;
    }

    /** The value of a field; null in releases that do not have it. */
    private static Object field(Object owner, String name) {
        try {
            return accessible(owner.getClass().getDeclaredField(name)).get(owner);
        } catch (ReflectiveOperationException absent) {
            return null;
        }
    }

    /** Why Kafka does not take each of these values, or null; each by its own definition, without all the others. */
    private static List<String> refusals(ConfigDef definition, String[][] settings) {
        List<String> refusals = new ArrayList<>();
        for (String[] setting : settings) {
            ConfigDef alone = new ConfigDef().define(definition.configKeys().get(setting[0]));
            try {
                alone.parse(Map.of(setting[0], setting[1]));
                refusals.add(null);
            } catch (ConfigException refused) {
                refusals.add(refused.getMessage());
            }
        }
        return refusals;
    }

    /** The definition that a class has: releases keep it in a method or in a field. */
    private static ConfigDef definition(String name) throws Exception {
        Class<?> declaring = Class.forName(name);
        for (String getter : new String[] {"configDefCopy", "configDef"}) {
            try {
                return (ConfigDef) accessible(declaring.getDeclaredMethod(getter)).invoke(null);
            } catch (NoSuchMethodException absent) {
                continue;
            }
        }
        for (Class<?> one = declaring; one != null; one = one.getSuperclass()) {
            for (Field field : one.getDeclaredFields()) {
                if (field.getName().startsWith("CONFIG") && ConfigDef.class.isAssignableFrom(field.getType())) {
                    return (ConfigDef) accessible(field).get(null);
                }
            }
        }
        throw new IllegalStateException(name + " has no definition of settings");
    }

    private static Collection<?> dynamicNames() throws Exception {
        Class<?> scala = Class.forName("kafka.server.DynamicBrokerConfig");
        try {
            Object names = scala.getMethod("AllDynamicConfigs").invoke(null);
            Class<?> conversion = Class.forName("scala.jdk.javaapi.CollectionConverters");
            for (Method method : conversion.getMethods()) {
                if (method.getName().equals("asJava") && method.getParameterTypes()[0].isInstance(names)
                    && Collection.class.isAssignableFrom(method.getReturnType())) {
                    return (Collection<?>) method.invoke(null, names);
                }
            }
        } catch (NoSuchMethodException moved) {
            Class<?> java = Class.forName("org.apache.kafka.server.config.DynamicBrokerConfig");
            return (Collection<?>) accessible(java.getDeclaredField("ALL_DYNAMIC_CONFIGS")).get(null);
        } catch (InvocationTargetException failed) {
            throw new IllegalStateException(failed.getCause());
        }
        throw new IllegalStateException("no names of dynamic settings");
    }

    private static <T extends AccessibleObject> T accessible(T member) {
        member.setAccessible(true);
        return member;
    }
}
