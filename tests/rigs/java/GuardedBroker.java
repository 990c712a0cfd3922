import java.io.IOException;
import java.io.PrintStream;
import java.util.Arrays;

/**
 * Kafka's broker, tied to the life of whoever started it: when standard input ends, the process ends at once.
 * The kernel closes that pipe however the other side dies, so no broker outlives a killed test run.
 *
 * <p>The first argument names its settings; arguments after it are those of Kafka's StorageTool, which formats the
 * broker's folders before: a process of its own would take as long to start as the broker.
 */
public final class GuardedBroker {
    private GuardedBroker() {
    }

    public static void main(String[] arguments) throws Exception {
        Thread guard = new Thread(GuardedBroker::haltWhenInputEnds, "guard");
        guard.setDaemon(true);
        guard.start();
        if (arguments.length > 1) {
            format(Arrays.copyOfRange(arguments, 1, arguments.length));
        }
        String[] settings = {arguments[0]};
        Class.forName("kafka.Kafka").getMethod("main", String[].class).invoke(null, (Object) settings);
    }

    private static void format(String[] arguments) throws ReflectiveOperationException {
        Object status = Class.forName("kafka.tools.StorageTool")
            .getMethod("execute", String[].class, PrintStream.class).invoke(null, arguments, System.out);
        if (!status.equals(0)) {
            throw new IllegalStateException("formatting ended with " + status);
        }
    }

    private static void haltWhenInputEnds() {
        try {
            while (System.in.read() >= 0) {
                // whatever is written there means nothing; only the end does
            }
        } catch (IOException ended) {
            // an unreadable pipe is an ended one
        }
        Runtime.getRuntime().halt(137);
    }
}
