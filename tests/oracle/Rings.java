import java.net.InetAddress;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.cassandra.config.DatabaseDescriptor;
import org.apache.cassandra.dht.Murmur3Partitioner;
import org.apache.cassandra.dht.Murmur3Partitioner.LongToken;
import org.apache.cassandra.dht.Range;
import org.apache.cassandra.dht.Token;
import org.apache.cassandra.locator.AbstractNetworkTopologySnitch;
import org.apache.cassandra.locator.AbstractReplicationStrategy;
import org.apache.cassandra.locator.EndpointsForRange;
import org.apache.cassandra.locator.InetAddressAndPort;
import org.apache.cassandra.locator.NetworkTopologyStrategy;
import org.apache.cassandra.locator.Replica;
import org.apache.cassandra.locator.SimpleStrategy;
import org.apache.cassandra.locator.TokenMetadata;

/** Draws rings in which nodes come, go and move, and prints who holds each token now and who is about to: the text of crates/ring/testdata/pending.txt.
 * Arguments: a seed, and how many rings. Run by `cassandra rings`. */
public class Rings {
    static final Map<InetAddressAndPort, String[]> places = new HashMap<>();

    static class Snitch extends AbstractNetworkTopologySnitch {
        @Override
        public String getRack(InetAddressAndPort endpoint) {
            return places.get(endpoint)[1];
        }

        @Override
        public String getDatacenter(InetAddressAndPort endpoint) {
            return places.get(endpoint)[0];
        }
    }

    static InetAddressAndPort address(int number) throws Exception {
        return InetAddressAndPort.getByAddress(InetAddress.getByAddress(new byte[] { 127, 0, 0, (byte) number }));
    }

    static int number(InetAddressAndPort endpoint) {
        return endpoint.getAddress().getAddress()[3];
    }

    static String numbers(Collection<Integer> of) {
        StringBuilder text = new StringBuilder();
        of.forEach(number -> text.append(' ').append(number));
        return text.toString();
    }

    public static void main(String[] arguments) throws Exception {
        DatabaseDescriptor.clientInitialization();
        DatabaseDescriptor.setPartitionerUnsafe(Murmur3Partitioner.instance);
        Random random = new Random(Long.parseLong(arguments[0]));
        for (int ring = 0; ring < Integer.parseInt(arguments[1]); ring++)
            draw(ring, random);
        System.exit(0);
    }

    static List<Token> tokens(Random random, int count, TreeSet<Long> taken) {
        List<Token> tokens = new ArrayList<>();
        while (tokens.size() < count) {
            long token = (random.nextInt(1000) - 500) * 10L;
            if (taken.add(token))
                tokens.add(new LongToken(token));
        }
        return tokens;
    }

    static void print(int number, String state, Collection<Token> tokens) throws Exception {
        String[] place = places.get(address(number));
        StringBuilder text = new StringBuilder("node " + number + " " + place[0] + " " + place[1] + " " + state);
        tokens.forEach(token -> text.append(' ').append(token));
        System.out.println(text);
    }

    static void draw(int ring, Random random) throws Exception {
        System.out.println("ring " + ring);
        places.clear();
        Snitch snitch = new Snitch();
        DatabaseDescriptor.setEndpointSnitch(snitch);
        TokenMetadata metadata = new TokenMetadata(snitch);
        int nodes = 3 + random.nextInt(6), centers = 1 + random.nextInt(2), racks = 1 + random.nextInt(3), each = 1 + random.nextInt(2);
        for (int number = 1; number <= nodes + 2; number++)
            places.put(address(number), new String[] { "dc" + (1 + random.nextInt(centers)), "r" + (1 + random.nextInt(racks)) });
        TreeSet<Long> taken = new TreeSet<>();
        Map<Integer, List<Token>> owned = new TreeMap<>();
        for (int number = 1; number <= nodes; number++) {
            owned.put(number, tokens(random, each, taken));
            metadata.updateNormalTokens(owned.get(number), address(number));
        }
        // one kind of change or two; no two nodes move or replace at once, because Cassandra looks at them in the order of a hash set
        int kinds = 1 + random.nextInt(15);
        int replaced = (kinds & 1) != 0 ? 1 : 0, leaving = (kinds & 2) != 0 ? 1 + random.nextInt(2) : 0, moving = (kinds & 4) != 0 ? 1 : 0, joining = (kinds & 8) != 0 ? 1 + random.nextInt(2) : 0;
        if (replaced + leaving + moving >= nodes)
            leaving = 0;
        int next = 1, fresh = nodes + 1;
        if (replaced == 1) {
            // in the data center of the replaced node, perhaps in another rack
            places.put(address(fresh), new String[] { places.get(address(next))[0], places.get(address(fresh))[1] });
            metadata.addReplaceTokens(owned.get(next), address(fresh), address(next));
            print(next, "NORMAL", owned.get(next));
            print(fresh++, "BOOT_REPLACE:" + next, owned.get(next));
            next++;
            joining = Math.min(joining, 1);
        }
        for (int left = leaving; left > 0; left--, next++) {
            metadata.addLeavingEndpoint(address(next));
            print(next, "LEAVING", owned.get(next));
        }
        if (moving == 1 && each == 1) {
            Token to = tokens(random, 1, taken).get(0);
            metadata.addMovingEndpoint(to, address(next));
            print(next, "MOVING:" + to, owned.get(next));
            next++;
        }
        for (; next <= nodes; next++)
            print(next, "NORMAL", owned.get(next));
        for (int left = joining; left > 0; left--, fresh++) {
            List<Token> tokens = tokens(random, each, taken);
            metadata.addBootstrapTokens(tokens, address(fresh));
            print(fresh, "BOOT", tokens);
        }
        for (int strategies = 0; strategies < 4; strategies++) {
            Map<String, String> options = new TreeMap<>();
            AbstractReplicationStrategy strategy;
            if (strategies < 2) {
                options.put("replication_factor", "" + (1 + random.nextInt(4)));
                strategy = new SimpleStrategy("ks", metadata, snitch, options);
            } else {
                for (int center = 1; center <= centers; center++)
                    options.put("dc" + center, "" + (1 + random.nextInt(4)));
                strategy = new NetworkTopologyStrategy("ks", metadata, snitch, options);
            }
            StringBuilder text = new StringBuilder("replicate " + strategy.getClass().getSimpleName());
            options.forEach((name, factor) -> text.append(' ').append(name).append('=').append(factor));
            System.out.println(text);
            metadata.unsafeCalculatePendingRanges(strategy, "ks");
            for (long token : taken) {
                List<Integer> now = new ArrayList<>();
                TreeSet<Integer> pending = new TreeSet<>();
                for (Replica replica : strategy.calculateNaturalReplicas(new LongToken(token), metadata))
                    now.add(number(replica.endpoint()));
                // range by range: of an endpoint that has two overlapping ranges pending TokenMetadata itself makes an exception
                for (Map.Entry<Range<Token>, EndpointsForRange.Builder> range : metadata.getPendingRanges("ks"))
                    if (range.getKey().contains(new LongToken(token)))
                        for (Replica replica : range.getValue())
                            pending.add(number(replica.endpoint()));
                System.out.println(token + " :" + numbers(now) + " ;" + numbers(pending));
            }
        }
    }
}
