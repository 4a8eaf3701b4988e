import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.config.DefaultDriverOption;
import com.datastax.oss.driver.api.core.config.DriverConfigLoader;
import com.datastax.oss.driver.api.core.cql.PreparedStatement;
import com.datastax.oss.driver.api.core.cql.ResultSet;
import com.datastax.oss.driver.api.core.metadata.Node;
import com.datastax.oss.driver.api.core.metadata.NodeState;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;

/** The Java driver as a client of a ring: what tests/ring/drivers asks for, a line of JSON an answer. Arguments: ADDRESS PORT. */
public final class RingClient {
    private static final long PATIENCE_MILLIS = 60_000;

    private final CqlSession session;
    private final Map<String, PreparedStatement> prepared = new TreeMap<>();

    private RingClient(CqlSession session) {
        this.session = session;
        for (String name : List.of("one", "three")) {
            prepared.put(name, session.prepare("SELECT k FROM ring_" + name + ".t WHERE k = ?"));
        }
    }

    private static String address(Node node) {
        return ((InetSocketAddress) node.getEndPoint().resolve()).getAddress().getHostAddress();
    }

    private List<String> up() {
        TreeSet<String> found = new TreeSet<>();
        for (Node node : session.getMetadata().getNodes().values()) {
            if (node.getState() == NodeState.UP) {
                found.add(address(node));
            }
        }
        return new ArrayList<>(found);
    }

    private List<String> coordinators(String name, int count) {
        List<String> found = new ArrayList<>();
        for (int key = 0; key < count; key++) {
            ResultSet result = session.execute(prepared.get(name).bind(key));
            found.add(address(result.getExecutionInfo().getCoordinator()));
        }
        return found;
    }

    private boolean awaited(String address, boolean isUp) throws InterruptedException {
        long until = System.currentTimeMillis() + PATIENCE_MILLIS;
        while (up().contains(address) != isUp && System.currentTimeMillis() < until) {
            Thread.sleep(50);
        }
        return up().contains(address) == isUp;
    }

    private Object answer(String verb, String word) throws InterruptedException {
        switch (verb) {
            case "hosts":
                return up();
            case "aware":
                return coordinators("one", Integer.parseInt(word));
            case "spread":
                return new ArrayList<>(new TreeSet<>(coordinators("three", Integer.parseInt(word))));
            case "schema":
                ResultSet result = session.execute("CREATE TABLE ring_three." + word + " (k int PRIMARY KEY)");
                return result.getExecutionInfo().isSchemaInAgreement();
            case "up":
            case "down":
                return awaited(word, verb.equals("up"));
            default:
                throw new IllegalArgumentException("unknown verb " + verb);
        }
    }

    private static String quoted(String text) {
        return "\"" + text.replace("\\", "\\\\").replace("\"", "\\\"").replace("\n", " ") + "\"";
    }

    private static String json(Object answer) {
        if (!(answer instanceof List)) {
            return answer.toString();
        }
        List<String> parts = new ArrayList<>();
        for (Object part : (List<?>) answer) {
            parts.add(quoted(part.toString()));
        }
        return "[" + String.join(", ", parts) + "]";
    }

    public static void main(String[] args) throws Exception {
        DriverConfigLoader config =
                DriverConfigLoader.programmaticBuilder()
                        .withDuration(DefaultDriverOption.REQUEST_TIMEOUT, Duration.ofSeconds(20))
                        .withDuration(DefaultDriverOption.RECONNECTION_MAX_DELAY, Duration.ofSeconds(2))
                        .build();
        InetSocketAddress contact = new InetSocketAddress(args[0], Integer.parseInt(args[1]));
        try (CqlSession session =
                CqlSession.builder().addContactPoint(contact).withLocalDatacenter("datacenter1").withConfigLoader(config).build()) {
            RingClient client = new RingClient(session);
            System.out.println("\"ready\"");
            BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                String[] words = line.split(" ");
                try {
                    System.out.println(json(client.answer(words[0], words.length > 1 ? words[1] : "")));
                } catch (RuntimeException error) {
                    System.out.println("{\"error\": " + quoted(error.toString()) + "}");
                }
            }
        }
    }
}
