// Java, Testcontainers: org.testcontainers:cassandra, com.datastax.oss:java-driver-core, JUnit 5. The image is loaded
// first (docker load). The image has no cqlsh, so a node is waited for by its log.

import static org.junit.jupiter.api.Assertions.assertTrue;

import com.datastax.oss.driver.api.core.CqlSession;
import java.net.InetSocketAddress;
import org.junit.jupiter.api.Test;
import org.testcontainers.containers.GenericContainer;
import org.testcontainers.containers.wait.strategy.Wait;
import org.testcontainers.utility.DockerImageName;

class HelenusTest {
    @Test
    void release() {
        try (GenericContainer<?> node = new GenericContainer<>(DockerImageName.parse("helenus:0.1.0"))
                .withExposedPorts(9042)
                .withEnv("MAX_HEAP_SIZE", "256M")
                .waitingFor(Wait.forLogMessage(".*Startup complete.*", 1))) {
            node.start();
            InetSocketAddress address = new InetSocketAddress(node.getHost(), node.getMappedPort(9042));
            try (CqlSession session = CqlSession.builder().addContactPoint(address).withLocalDatacenter("datacenter1").build()) {
                String release = session.execute("SELECT release_version FROM system.local").one().getString(0);
                assertTrue(release.startsWith("5.0"));
            }
        }
    }
}
