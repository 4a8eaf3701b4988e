import com.datastax.oss.driver.api.core.CqlIdentifier;
import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.CqlSessionBuilder;
import com.datastax.oss.driver.api.core.config.DefaultDriverOption;
import com.datastax.oss.driver.api.core.config.DriverConfigLoader;
import com.datastax.oss.driver.api.core.cql.BatchStatement;
import com.datastax.oss.driver.api.core.cql.BatchStatementBuilder;
import com.datastax.oss.driver.api.core.cql.DefaultBatchType;
import com.datastax.oss.driver.api.core.cql.PreparedStatement;
import com.datastax.oss.driver.api.core.cql.ResultSet;
import com.datastax.oss.driver.api.core.cql.Row;
import com.datastax.oss.driver.api.core.cql.SimpleStatement;
import com.datastax.oss.driver.api.core.data.CqlVector;
import com.datastax.oss.driver.api.core.data.TupleValue;
import com.datastax.oss.driver.api.core.data.UdtValue;
import com.datastax.oss.driver.api.core.metadata.schema.AggregateMetadata;
import com.datastax.oss.driver.api.core.metadata.schema.FunctionMetadata;
import com.datastax.oss.driver.api.core.metadata.schema.IndexMetadata;
import com.datastax.oss.driver.api.core.metadata.schema.KeyspaceMetadata;
import com.datastax.oss.driver.api.core.metadata.schema.SchemaChangeListenerBase;
import com.datastax.oss.driver.api.core.metadata.schema.TableMetadata;
import com.datastax.oss.driver.api.core.metadata.schema.ViewMetadata;
import com.datastax.oss.driver.api.core.servererrors.AlreadyExistsException;
import com.datastax.oss.driver.api.core.servererrors.InvalidQueryException;
import com.datastax.oss.driver.api.core.servererrors.SyntaxError;
import com.datastax.oss.driver.api.core.type.DataTypes;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** The Java driver 4.19 with its defaults against a running server; the last line printed is "N passed, N failed". */
public final class DriverTests {
    private static final String HOST = System.getenv().getOrDefault("HELENUS_TEST_HOST", "127.0.0.1");
    private static final int PORT = Integer.parseInt(System.getenv().getOrDefault("HELENUS_TEST_PORT", "9042"));

    private interface Test {
        void run(CqlSession session) throws Exception;
    }

    public static void main(String[] args) {
        Map<String, Test> tests =
                Map.ofEntries(
                        Map.entry("defaults", DriverTests::defaults),
                        Map.entry("schema and metadata", DriverTests::schemaAndMetadata),
                        Map.entry("views, functions, aggregates and indexes", DriverTests::language),
                        Map.entry("types", DriverTests::types),
                        Map.entry("prepared statements", DriverTests::preparedStatements),
                        Map.entry("prepared statements of altered tables", DriverTests::alteredTables),
                        Map.entry("pages", DriverTests::pages),
                        Map.entry("batches", DriverTests::batches),
                        Map.entry("events", DriverTests::events),
                        Map.entry("compression", DriverTests::compression),
                        Map.entry("tracing", DriverTests::tracing),
                        Map.entry("errors", DriverTests::errors));
        int failed = 0;
        try (CqlSession session = builder().build()) {
            session.execute("DROP KEYSPACE IF EXISTS java_tests");
            session.execute(
                    "CREATE KEYSPACE java_tests WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
            for (Map.Entry<String, Test> test : tests.entrySet()) {
                try {
                    test.getValue().run(session);
                    System.out.println("ok    " + test.getKey());
                } catch (Throwable error) {
                    failed++;
                    System.out.println("FAIL  " + test.getKey());
                    error.printStackTrace(System.out);
                }
            }
            session.execute("DROP KEYSPACE java_tests");
        }
        System.out.printf("%d passed, %d failed%n", tests.size() - failed, failed);
        System.exit(failed == 0 ? 0 : 1);
    }

    private static CqlSessionBuilder builder() {
        return builder("V5");
    }

    private static CqlSessionBuilder builder(String version) {
        return CqlSession.builder()
                .addContactPoint(new InetSocketAddress(HOST, PORT))
                .withLocalDatacenter("datacenter1")
                .withConfigLoader(
                        DriverConfigLoader.programmaticBuilder()
                                .withDuration(DefaultDriverOption.REQUEST_TIMEOUT, Duration.ofSeconds(20))
                                .withString(DefaultDriverOption.PROTOCOL_VERSION, version)
                                .build());
    }

    private static void same(Object got, Object want) {
        if (!want.equals(got)) throw new AssertionError("got " + got + ", wanted " + want);
    }

    private static void defaults(CqlSession session) {
        same(session.getContext().getProtocolVersion().getCode(), 5);
        same(session.getMetadata().getNodes().size(), 1);
        same(session.execute("SELECT key FROM system.local").one().getString(0), "local");
        same(session.getMetadata().getTokenMap().isPresent(), true);
    }

    private static void schemaAndMetadata(CqlSession session) {
        session.execute("CREATE TYPE java_tests.place (name text, number int)");
        session.execute(
                "CREATE TABLE java_tests.full_one (a int, b text, c timeuuid, s text static, p frozen<place>, m map<text, frozen<list<int>>>,"
                        + " PRIMARY KEY ((a, b), c)) WITH CLUSTERING ORDER BY (c DESC) AND comment = 'seen'");
        TableMetadata table =
                session.getMetadata().getKeyspace("java_tests").get().getTable("full_one").get();
        same(table.getPartitionKey().size(), 2);
        same(table.getClusteringColumns().toString().contains("DESC"), true);
        same(table.getColumn("m").get().getType().asCql(true, true), "map<text, frozen<list<int>>>");
        same(table.getColumn("s").get().isStatic(), true);
        same(table.getOptions().get(CqlIdentifier.fromCql("comment")), "seen");
        session.execute("ALTER TABLE java_tests.full_one ADD extra int");
        table = session.getMetadata().getKeyspace("java_tests").get().getTable("full_one").get();
        same(table.getColumn("extra").isPresent(), true);
    }

    private static void language(CqlSession session) {
        session.execute("CREATE TABLE java_tests.l (k int, c int, v int, w text, m map<text, int>, PRIMARY KEY (k, c))");
        session.execute(
                "CREATE MATERIALIZED VIEW java_tests.l_by_v AS SELECT v, k, c, w FROM java_tests.l WHERE v IS NOT NULL AND k IS NOT NULL"
                        + " AND c IS NOT NULL PRIMARY KEY ((v, k), c) WITH CLUSTERING ORDER BY (c DESC)");
        session.execute("CREATE INDEX l_m ON java_tests.l (entries(m))");
        session.execute("CREATE INDEX l_w ON java_tests.l (w) USING 'sai' WITH OPTIONS = {'case_sensitive': 'false'}");
        session.execute(
                "CREATE FUNCTION java_tests.plus (state int, val int) CALLED ON NULL INPUT RETURNS int LANGUAGE java AS 'return state + val;'");
        session.execute(
                "CREATE FUNCTION java_tests.shown (val int) RETURNS NULL ON NULL INPUT RETURNS list<text> LANGUAGE java AS 'return null;'");
        session.execute("CREATE AGGREGATE java_tests.total (int) SFUNC plus STYPE int FINALFUNC shown INITCOND 0");
        KeyspaceMetadata keyspace = session.getMetadata().getKeyspace("java_tests").get();
        ViewMetadata view = keyspace.getView("l_by_v").get();
        same(view.getBaseTable().asInternal() + " " + view.getWhereClause().get(), "l v IS NOT NULL AND k IS NOT NULL AND c IS NOT NULL");
        same(view.getPartitionKey().size() + " " + view.getClusteringColumns().values() + " " + view.includesAllColumns(), "2 [DESC] false");
        Map<CqlIdentifier, IndexMetadata> indexes = keyspace.getTable("l").get().getIndexes();
        IndexMetadata m = indexes.get(CqlIdentifier.fromCql("l_m"));
        IndexMetadata w = indexes.get(CqlIdentifier.fromCql("l_w"));
        same(m.getKind() + " " + m.getTarget() + " " + m.getOptions(), "COMPOSITES entries(m) {target=entries(m)}");
        same(w.getKind() + " " + w.getClassName().get() + " " + w.getOptions().get("case_sensitive"), "CUSTOM sai false");
        FunctionMetadata plus = keyspace.getFunction("plus", DataTypes.INT, DataTypes.INT).get();
        same(plus.getParameterNames() + " " + plus.getBody() + " " + plus.getLanguage(), "[state, val] return state + val; java");
        same(plus.isCalledOnNullInput() && !keyspace.getFunction("shown", DataTypes.INT).get().isCalledOnNullInput(), true);
        AggregateMetadata total = keyspace.getAggregate("total", DataTypes.INT).get();
        same(total.getStateFuncSignature() + " " + total.getFinalFuncSignature().get() + " " + total.getInitCond().get(), "plus(int, int) shown(int) 0");
        same(total.getReturnType().asCql(false, false) + " " + total.getStateType(), "list<text> INT");
        same(
                total.describe(false),
                "CREATE AGGREGATE \"java_tests\".\"total\"(int) SFUNC \"plus\" STYPE int FINALFUNC \"shown\" INITCOND 0;");
        session.execute("DROP AGGREGATE java_tests.total");
        session.execute("DROP FUNCTION java_tests.plus (int, int)");
        session.execute("DROP MATERIALIZED VIEW java_tests.l_by_v");
        keyspace = session.getMetadata().getKeyspace("java_tests").get();
        same(keyspace.getAggregates().size() + " " + keyspace.getFunctions().size() + " " + keyspace.getViews().size(), "0 1 0");
    }

    private static void types(CqlSession session) {
        session.execute("CREATE TYPE java_tests.street (name text, number int)");
        session.execute(
                "CREATE TABLE java_tests.types (k int PRIMARY KEY, a bigint, b blob, c decimal, d date, e timestamp, f uuid, g varint,"
                        + " h list<int>, i set<text>, j map<text, int>, l tuple<int, text>, m frozen<street>, n vector<float, 2>, o boolean, p double)");
        PreparedStatement insert =
                session.prepare(
                        "INSERT INTO java_tests.types (k, a, b, c, d, e, f, g, h, i, j, l, m, n, o, p) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
        UUID id = UUID.randomUUID();
        Instant now = Instant.ofEpochMilli(1_700_000_000_123L);
        var definitions = insert.getVariableDefinitions();
        TupleValue tuple =
                ((com.datastax.oss.driver.api.core.type.TupleType) definitions.get("l").getType()).newValue(7, "seven");
        UdtValue street =
                ((com.datastax.oss.driver.api.core.type.UserDefinedType) definitions.get("m").getType())
                        .newValue("High", 3);
        session.execute(
                insert.bind(
                        1, Long.MIN_VALUE, ByteBuffer.wrap(new byte[] {0, -1}), new BigDecimal("1.50"), LocalDate.of(2024, 2, 29), now, id,
                        BigInteger.TEN.pow(30), List.of(3, 1), Set.of("a"), Map.of("x", 1), tuple, street, CqlVector.newInstance(1.5f, -2f), true, 0.5));
        Row row = session.execute("SELECT * FROM java_tests.types WHERE k = 1").one();
        same(row.getLong("a"), Long.MIN_VALUE);
        same(row.getByteBuffer("b").remaining(), 2);
        same(row.getBigDecimal("c"), new BigDecimal("1.50"));
        same(row.getLocalDate("d"), LocalDate.of(2024, 2, 29));
        same(row.getInstant("e"), now);
        same(row.getUuid("f"), id);
        same(row.getBigInteger("g"), BigInteger.TEN.pow(30));
        same(row.getList("h", Integer.class), List.of(3, 1));
        same(row.getSet("i", String.class), Set.of("a"));
        same(row.getMap("j", String.class, Integer.class), Map.of("x", 1));
        same(row.getTupleValue("l").getString(1), "seven");
        same(row.getUdtValue("m").getInt("number"), 3);
        same(row.getVector("n", Float.class), CqlVector.newInstance(1.5f, -2f));
        same(row.getBoolean("o"), true);
    }

    private static void preparedStatements(CqlSession session) {
        session.execute("CREATE TABLE java_tests.prepared (k int PRIMARY KEY, a text, b int)");
        PreparedStatement insert = session.prepare("INSERT INTO java_tests.prepared (k, a, b) VALUES (:k, :a, :b)");
        session.execute(insert.boundStatementBuilder().setInt("k", 1).setString("a", "x").setInt("b", 2).build());
        session.execute(insert.boundStatementBuilder().setInt("k", 1).setToNull("a").build());
        Row row = session.execute("SELECT a, b FROM java_tests.prepared WHERE k = 1").one();
        same(row.isNull("a"), true);
        same(row.getInt("b"), 2);
        PreparedStatement select = session.prepare("SELECT * FROM java_tests.prepared WHERE k = ?");
        same(session.execute(select.bind(1)).one().getColumnDefinitions().size(), 3);
        session.execute("ALTER TABLE java_tests.prepared ADD c int");
        same(session.execute(select.bind(1)).one().getColumnDefinitions().size(), 4);
        session.execute("DROP TABLE java_tests.prepared");
        session.execute("CREATE TABLE java_tests.prepared (k int PRIMARY KEY, a text, b int, c int)");
        session.execute(insert.bind(5, "again", 6));
        same(session.execute(select.bind(5)).one().getString("a"), "again");
    }

    /**
     * The server forgets a statement whose table is altered, and the driver prepares it again: between two pages too. The columns
     * are right in every session, also in one that was never told to prepare again because another did. In version 4 the driver
     * keeps the old columns then; Cassandra leaves it to decode new rows by them.
     */
    private static void alteredTables(CqlSession session) {
        boolean isHelenus = System.getenv().getOrDefault("HELENUS_TEST_PEER", "helenus").equals("helenus");
        for (String version : isHelenus ? List.of("V4", "V5") : List.of("V5")) {
            try (CqlSession one = builder(version).build();
                    CqlSession other = builder(version).build()) {
                session.execute("DROP TABLE IF EXISTS java_tests.altered");
                session.execute("CREATE TABLE java_tests.altered (k int, c int, v int, PRIMARY KEY (k, c))");
                for (int c = 0; c < 6; c++) session.execute("INSERT INTO java_tests.altered (k, c, v) VALUES (1, " + c + ", 5)");
                String query = "SELECT * FROM java_tests.altered WHERE k = ?";
                PreparedStatement first = one.prepare(query), second = other.prepare(query);
                ResultSet rows = one.execute(first.bind(1).setPageSize(3));
                same(rows.one().getColumnDefinitions().size(), 3);
                same(rows.getAvailableWithoutFetching(), 2);
                session.execute("ALTER TABLE java_tests.altered ADD a text");
                session.execute("UPDATE java_tests.altered SET a = 'new' WHERE k = 1 AND c = 3");
                for (int c = 1; c < 3; c++) same(rows.one().getInt("v"), 5);
                Row next = rows.one();
                same(next.getColumnDefinitions().size(), 4);
                same(next.getString("a"), "new");
                same(next.getInt("v"), 5);
                for (int time = 0; time < 3; time++) {
                    for (Row row : other.execute(second.bind(1).setPageSize(4))) {
                        same(row.getColumnDefinitions().size(), 4);
                        same(row.getInt("v"), 5);
                        same(row.isNull("a"), row.getInt("c") != 3);
                    }
                }
                if (version.equals("V5")) {
                    // the driver knows the new columns, so that answers need not carry them
                    same(first.getResultSetDefinitions().size(), 4);
                    same(second.getResultSetDefinitions().size(), 4);
                }
            }
        }
    }

    private static void pages(CqlSession session) throws Exception {
        session.execute("CREATE TABLE java_tests.pages (k int, c int, PRIMARY KEY (k, c))");
        PreparedStatement insert = session.prepare("INSERT INTO java_tests.pages (k, c) VALUES (1, ?)");
        List<CompletionStage<?>> writes = new ArrayList<>();
        for (int c = 0; c < 500; c++) writes.add(session.executeAsync(insert.bind(c)));
        for (CompletionStage<?> write : writes) write.toCompletableFuture().get();
        for (String order : List.of("ASC", "DESC")) {
            SimpleStatement select =
                    SimpleStatement.newInstance("SELECT c FROM java_tests.pages WHERE k = 1 ORDER BY c " + order).setPageSize(33);
            int seen = 0;
            for (Row row : session.execute(select)) same(row.getInt(0), order.equals("ASC") ? seen++ : 499 - seen++);
            same(seen, 500);
        }
        SimpleStatement select = SimpleStatement.newInstance("SELECT c FROM java_tests.pages WHERE k = 1").setPageSize(100);
        ResultSet first = session.execute(select);
        same(first.getAvailableWithoutFetching(), 100);
        ByteBuffer state = first.getExecutionInfo().getPagingState();
        same(session.execute(select.setPagingState(state)).one().getInt(0), 100);
    }

    private static void batches(CqlSession session) {
        session.execute("CREATE TABLE java_tests.batches (k int, c int, v text, PRIMARY KEY (k, c))");
        PreparedStatement insert = session.prepare("INSERT INTO java_tests.batches (k, c, v) VALUES (?, ?, ?)");
        for (DefaultBatchType type : List.of(DefaultBatchType.LOGGED, DefaultBatchType.UNLOGGED)) {
            BatchStatementBuilder batch = BatchStatement.builder(type);
            for (int c = 0; c < 30; c++) batch.addStatement(insert.bind(type.ordinal(), c, "v" + c));
            session.execute(batch.build());
            same(session.execute("SELECT c FROM java_tests.batches WHERE k = " + type.ordinal()).all().size(), 30);
        }
    }

    private static void events(CqlSession session) throws Exception {
        CountDownLatch created = new CountDownLatch(1), dropped = new CountDownLatch(1);
        SchemaChangeListenerBase listener =
                new SchemaChangeListenerBase() {
                    @Override
                    public void onTableCreated(TableMetadata table) {
                        if (table.getName().asInternal().equals("eventful")) created.countDown();
                    }

                    @Override
                    public void onTableDropped(TableMetadata table) {
                        if (table.getName().asInternal().equals("eventful")) dropped.countDown();
                    }
                };
        try (CqlSession watcher = builder().withSchemaChangeListener(listener).build()) {
            session.execute("CREATE TABLE java_tests.eventful (k int PRIMARY KEY)");
            same(created.await(20, TimeUnit.SECONDS), true);
            session.execute("DROP TABLE java_tests.eventful");
            same(dropped.await(20, TimeUnit.SECONDS), true);
            same(watcher.isClosed(), false);
        }
    }

    private static void compression(CqlSession session) {
        for (String algorithm : List.of("lz4", "snappy")) {
            DriverConfigLoader config =
                    DriverConfigLoader.programmaticBuilder()
                            .withString(DefaultDriverOption.PROTOCOL_COMPRESSION, algorithm)
                            .withString(DefaultDriverOption.PROTOCOL_VERSION, algorithm.equals("lz4") ? "V5" : "V4")
                            .build();
            try (CqlSession compressed = builder().withConfigLoader(config).build()) {
                same(compressed.execute("SELECT * FROM system_schema.columns").all().size() > 100, true);
            }
        }
    }

    private static void tracing(CqlSession session) {
        SimpleStatement traced = SimpleStatement.newInstance("SELECT key FROM system.local").setTracing(true);
        var trace = session.execute(traced).getExecutionInfo().getQueryTrace();
        same(trace.getRequestType(), "Execute CQL3 query");
        same(trace.getEvents().isEmpty(), false);
    }

    private static void errors(CqlSession session) {
        refused(session, "SELEC", SyntaxError.class);
        refused(session, "SELECT nosuch FROM system.local", InvalidQueryException.class);
        refused(
                session,
                "CREATE KEYSPACE java_tests WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
                AlreadyExistsException.class);
    }

    private static void refused(CqlSession session, String query, Class<?> error) {
        try {
            session.execute(query);
        } catch (RuntimeException got) {
            same(got.getClass(), error);
            return;
        }
        throw new AssertionError("not refused: " + query);
    }
}
