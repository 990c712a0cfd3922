import java.io.IOException;

/**
 * Kafka's broker, tied to the life of whoever started it: when standard input ends, the process ends at once.
 * The kernel closes that pipe however the other side dies, so no broker outlives a killed test run.
 */
public final class GuardedBroker {
    private GuardedBroker() {
    }

    public static void main(String[] arguments) throws Exception {
        Thread guard = new Thread(GuardedBroker::haltWhenInputEnds, "guard");
        guard.setDaemon(true);
        guard.start();
        Class.forName("kafka.Kafka").getMethod("main", String[].class).invoke(null, (Object) arguments);
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
