import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;

import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyFactory;
import java.security.PrivateKey;
import java.security.spec.MGF1ParameterSpec;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;

import javax.crypto.Cipher;
import javax.crypto.spec.OAEPParameterSpec;
import javax.crypto.spec.PSource;

/**
 * Whether the manifests of two folders hold the same data keys, each wrapped for a key pair of its own, by Java's own
 * cryptography and the library for JSON that Aiven's plugin has.
 *
 * <p>DataKeyOracle PEM FOLDER OTHER-PEM OTHER-FOLDER prints how many manifests the first folder has, and how many of
 * them have the same data key in the other, and the same fields besides.
 */
public final class DataKeyOracle {
    private static final ObjectMapper MAPPER =
            new ObjectMapper().enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS);
    private static final OAEPParameterSpec PADDING = new OAEPParameterSpec(
            "SHA3-512", "MGF1", new MGF1ParameterSpec("SHA3-512"), PSource.PSpecified.DEFAULT);

    private DataKeyOracle() {
    }

    public static void main(String[] arguments) throws Exception {
        PrivateKey key = privateKey(Path.of(arguments[0]));
        PrivateKey otherKey = privateKey(Path.of(arguments[2]));
        Path folder = Path.of(arguments[1]);
        Path otherFolder = Path.of(arguments[3]);
        int sameKeys = 0;
        int sameFields = 0;
        List<Path> manifests;
        try (Stream<Path> found = Files.walk(folder)) {
            manifests = found.filter(path -> path.toString().endsWith(".rsm-manifest")).collect(Collectors.toList());
        }
        for (Path path : manifests) {
            JsonNode manifest = MAPPER.readTree(path.toFile());
            JsonNode other = MAPPER.readTree(otherFolder.resolve(folder.relativize(path)).toFile());
            sameKeys += Arrays.equals(dataKey(manifest, key), dataKey(other, otherKey)) ? 1 : 0;
            sameFields += withoutDataKey(manifest).equals(withoutDataKey(other)) ? 1 : 0;
        }
        System.out.println("manifests=" + manifests.size() + " sameKeys=" + sameKeys + " sameFields=" + sameFields);
    }

    private static byte[] dataKey(JsonNode manifest, PrivateKey key) throws Exception {
        String text = manifest.get("encryption").get("dataKey").asText();
        Cipher cipher = Cipher.getInstance("RSA/ECB/OAEPPadding");
        cipher.init(Cipher.DECRYPT_MODE, key, PADDING);
        return cipher.doFinal(Base64.getDecoder().decode(text.substring(text.indexOf(':') + 1)));
    }

    private static JsonNode withoutDataKey(JsonNode manifest) {
        JsonNode copy = manifest.deepCopy();
        ((ObjectNode) copy.get("encryption")).remove("dataKey");
        return copy;
    }

    private static PrivateKey privateKey(Path file) throws Exception {
        String text = Files.readString(file).replaceAll("-----[A-Z ]+-----|\\s", "");
        return KeyFactory.getInstance("RSA").generatePrivate(new PKCS8EncodedKeySpec(Base64.getDecoder().decode(text)));
    }
}
