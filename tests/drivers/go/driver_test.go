// The gocql driver with its defaults against a running server (HELENUS_TEST_HOST, HELENUS_TEST_PORT).
package drivertests

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gocql/gocql"
)

func cluster() *gocql.ClusterConfig {
	host := os.Getenv("HELENUS_TEST_HOST")
	if host == "" {
		host = "127.0.0.1"
	}
	config := gocql.NewCluster(host)
	config.Timeout = 20 * time.Second
	config.ConnectTimeout = 20 * time.Second
	if port, err := strconv.Atoi(os.Getenv("HELENUS_TEST_PORT")); err == nil {
		config.Port = port
	}
	return config
}

func connect(t *testing.T, config *gocql.ClusterConfig) *gocql.Session {
	t.Helper()
	session, err := config.CreateSession()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(session.Close)
	return session
}

func run(t *testing.T, session *gocql.Session, statement string, values ...interface{}) {
	t.Helper()
	if err := session.Query(statement, values...).Exec(); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// keyspace makes one anew for the test and drops it at the end.
func keyspace(t *testing.T, session *gocql.Session, name string) {
	run(t, session, "DROP KEYSPACE IF EXISTS "+name)
	run(t, session, "CREATE KEYSPACE "+name+" WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
	t.Cleanup(func() { run(t, session, "DROP KEYSPACE "+name) })
}

func TestSchemaAndMetadata(t *testing.T) {
	session := connect(t, cluster())
	keyspace(t, session, "go_schema")
	run(t, session, "CREATE TYPE go_schema.place (name text, number int)")
	run(t, session, "CREATE TABLE go_schema.t (a int, b text, c timeuuid, s text static, p frozen<place>, PRIMARY KEY ((a, b), c)) WITH CLUSTERING ORDER BY (c DESC)")
	metadata, err := session.KeyspaceMetadata("go_schema")
	if err != nil {
		t.Fatal(err)
	}
	table := metadata.Tables["t"]
	if table == nil || len(table.PartitionKey) != 2 || len(table.ClusteringColumns) != 1 || len(table.Columns) != 5 {
		t.Fatalf("%+v", table)
	}
	if metadata.UserTypes["place"] == nil {
		t.Fatal("the type is missing")
	}
}

func TestViewsFunctionsAndAggregates(t *testing.T) {
	session := connect(t, cluster())
	keyspace(t, session, "go_language")
	run(t, session, "CREATE TABLE go_language.t (k int, c int, v int, w text, PRIMARY KEY (k, c))")
	run(t, session, "CREATE MATERIALIZED VIEW go_language.by_v AS SELECT * FROM go_language.t WHERE v IS NOT NULL AND k IS NOT NULL AND c IS NOT NULL PRIMARY KEY (v, k, c) WITH comment = 'seen'")
	run(t, session, "CREATE INDEX by_w ON go_language.t (w) USING 'sai'")
	run(t, session, "CREATE FUNCTION go_language.plus (state int, val int) CALLED ON NULL INPUT RETURNS int LANGUAGE java AS 'return state + val;'")
	run(t, session, "CREATE FUNCTION go_language.shown (val int) RETURNS NULL ON NULL INPUT RETURNS list<text> LANGUAGE java AS 'return null;'")
	run(t, session, "CREATE AGGREGATE go_language.total (int) SFUNC plus STYPE int FINALFUNC shown INITCOND 0")
	metadata, err := session.KeyspaceMetadata("go_language")
	if err != nil {
		t.Fatal(err)
	}
	view := metadata.MaterializedViews["by_v"]
	if view == nil || view.BaseTable != metadata.Tables["t"] || !view.IncludeAllColumns || view.Comment != "seen" {
		t.Fatalf("%+v", view)
	}
	// the driver takes a view, whose columns stand among those of tables, for a table too
	if len(metadata.Tables) != 2 || len(metadata.Tables["t"].Columns) != 4 {
		t.Fatalf("%+v", metadata.Tables)
	}
	plus, shown := metadata.Functions["plus"], metadata.Functions["shown"]
	if plus == nil || !plus.CalledOnNullInput || plus.Body != "return state + val;" || plus.Language != "java" || !reflect.DeepEqual(plus.ArgumentNames, []string{"state", "val"}) {
		t.Fatalf("%+v", plus)
	}
	if shown == nil || shown.CalledOnNullInput || shown.ReturnType.Type() != gocql.TypeList || len(shown.ArgumentTypes) != 1 || shown.ArgumentTypes[0].Type() != gocql.TypeInt {
		t.Fatalf("%+v", shown)
	}
	total := metadata.Aggregates["total"]
	if total == nil || total.StateFunc.Name != "plus" || total.FinalFunc.Name != "shown" || total.InitCond != "0" || total.StateType.Type() != gocql.TypeInt {
		t.Fatalf("%+v", total)
	}
	for iter := session.Query("SELECT index_name, kind, options FROM system_schema.indexes WHERE keyspace_name = 'go_language'").Iter(); ; {
		var name, kind string
		var options map[string]string
		if !iter.Scan(&name, &kind, &options) {
			break
		}
		if name != "by_w" || kind != "CUSTOM" || options["class_name"] != "sai" || options["target"] != "w" {
			t.Fatal(name, kind, options)
		}
	}
}

func TestPreparedStatementsAndTypes(t *testing.T) {
	session := connect(t, cluster())
	keyspace(t, session, "go_types")
	run(t, session, "CREATE TABLE go_types.t (k int PRIMARY KEY, a text, b bigint, c blob, d list<int>, e map<text, int>, f set<text>, g timestamp, h uuid, i boolean, j double)")
	when := time.UnixMilli(1700000000123).UTC()
	id := gocql.MustRandomUUID()
	insert := "INSERT INTO go_types.t (k, a, b, c, d, e, f, g, h, i, j) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
	for k := 0; k < 20; k++ {
		run(t, session, insert, k, "text", int64(-1)<<63, []byte{0, 255}, []int{3, 1}, map[string]int{"x": 1}, []string{"a", "b"}, when, id, true, 0.5)
	}
	var a string
	var b int64
	var c []byte
	var d []int
	var e map[string]int
	var f []string
	var g time.Time
	var h gocql.UUID
	var i bool
	var j float64
	if err := session.Query("SELECT a, b, c, d, e, f, g, h, i, j FROM go_types.t WHERE k = ?", 7).Scan(&a, &b, &c, &d, &e, &f, &g, &h, &i, &j); err != nil {
		t.Fatal(err)
	}
	got := []interface{}{a, b, c, d, e, f, g.UTC(), h, i, j}
	want := []interface{}{"text", int64(-1) << 63, []byte{0, 255}, []int{3, 1}, map[string]int{"x": 1}, []string{"a", "b"}, when, id, true, 0.5}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("got %v, wanted %v", got, want)
	}
	run(t, session, "INSERT INTO go_types.t (k, a, b) VALUES (?, ?, ?)", 7, gocql.UnsetValue, nil)
	var nullable *int64
	if err := session.Query("SELECT a, b FROM go_types.t WHERE k = 7").Scan(&a, &nullable); err != nil || a != "text" || nullable != nil {
		t.Fatal(err, a, nullable)
	}
	if err := session.Query("SELECT a FROM go_types.t WHERE k = 99").Scan(&a); !errors.Is(err, gocql.ErrNotFound) {
		t.Fatal(err)
	}
}

// errorFrames counts answers that are errors: the driver handles UNPREPARED by itself.
type errorFrames struct{ count atomic.Int64 }

func (errors *errorFrames) ObserveFrameHeader(_ context.Context, frame gocql.ObservedFrameHeader) {
	if frame.Opcode.String() == "ERROR" {
		errors.count.Add(1)
	}
}

func rowsOf(t *testing.T, session *gocql.Session, query string, values ...interface{}) []map[string]interface{} {
	t.Helper()
	rows, err := session.Query(query, values...).PageSize(2).Iter().SliceMap()
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return rows
}

// The server forgets a statement whose table is altered, and the driver prepares it again, once. The columns are right in a second
// session too, although the first has prepared the statement again before. There Cassandra says nothing, and this driver, which asks for
// rows without columns and keeps those that it has, takes new rows for rows of old columns.
func TestPreparedStatementsOfAlteredTables(t *testing.T) {
	session := connect(t, cluster())
	keyspace(t, session, "go_altered")
	run(t, session, "CREATE TABLE go_altered.t (k int, c int, v int, PRIMARY KEY (k, c))")
	for c := 0; c < 4; c++ {
		run(t, session, "INSERT INTO go_altered.t (k, c, v) VALUES (?, ?, ?)", 1, c, 5)
	}
	errors := &errorFrames{}
	config := cluster()
	config.NumConns, config.FrameHeaderObserver = 1, errors
	sessions := []*gocql.Session{connect(t, config)}
	if os.Getenv("HELENUS_TEST_PEER") != "cassandra" {
		sessions = append(sessions, connect(t, config))
	}
	query := "SELECT * FROM go_altered.t WHERE k = ?"
	old := map[string]interface{}{"k": 1, "c": 0, "v": 5}
	for _, session := range sessions {
		if rows := rowsOf(t, session, query, 1); len(rows) != 4 || !reflect.DeepEqual(rows[0], old) {
			t.Fatal(rows)
		}
	}
	run(t, session, "ALTER TABLE go_altered.t ADD a text")
	run(t, session, "UPDATE go_altered.t SET a = 'new' WHERE k = 1 AND c = 0")
	errors.count.Store(0)
	now := map[string]interface{}{"k": 1, "c": 0, "a": "new", "v": 5}
	for time := 0; time < 3; time++ {
		for _, session := range sessions {
			if rows := rowsOf(t, session, query, 1); len(rows) != 4 || !reflect.DeepEqual(rows[0], now) {
				t.Fatal(time, rows)
			}
		}
	}
	if got := errors.count.Load(); got != int64(len(sessions)) {
		t.Fatalf("told to prepare again %d times in %d sessions", got, len(sessions))
	}
}

func TestPages(t *testing.T) {
	session := connect(t, cluster())
	keyspace(t, session, "go_pages")
	run(t, session, "CREATE TABLE go_pages.t (k int, c int, PRIMARY KEY (k, c))")
	for c := 0; c < 300; c++ {
		run(t, session, "INSERT INTO go_pages.t (k, c) VALUES (1, ?)", c)
	}
	for _, order := range []string{"ASC", "DESC"} {
		iter := session.Query("SELECT c FROM go_pages.t WHERE k = ? ORDER BY c "+order, 1).PageSize(17).Iter()
		seen, c := 0, 0
		for iter.Scan(&c) {
			want := seen
			if order == "DESC" {
				want = 299 - seen
			}
			if c != want {
				t.Fatalf("%s: got %d, wanted %d", order, c, want)
			}
			seen++
		}
		if err := iter.Close(); err != nil || seen != 300 {
			t.Fatal(err, seen)
		}
	}
	iter := session.Query("SELECT c FROM go_pages.t WHERE k = 1").PageSize(100).PageState(nil).Iter()
	state := iter.PageState()
	if iter.NumRows() != 100 || len(state) == 0 {
		t.Fatal(iter.NumRows(), len(state))
	}
	var c int
	iter = session.Query("SELECT c FROM go_pages.t WHERE k = 1").PageSize(100).PageState(state).Iter()
	if !iter.Scan(&c) || c != 100 {
		t.Fatal(c)
	}
}

func TestBatches(t *testing.T) {
	session := connect(t, cluster())
	keyspace(t, session, "go_batch")
	run(t, session, "CREATE TABLE go_batch.t (k int, c int, v text, PRIMARY KEY (k, c))")
	for _, kind := range []gocql.BatchType{gocql.LoggedBatch, gocql.UnloggedBatch} {
		batch := session.NewBatch(kind)
		for c := 0; c < 40; c++ {
			batch.Query("INSERT INTO go_batch.t (k, c, v) VALUES (?, ?, ?)", int(kind), c, fmt.Sprint("v", c))
		}
		if err := session.ExecuteBatch(batch); err != nil {
			t.Fatal(err)
		}
		var count int
		if err := session.Query("SELECT count(*) FROM go_batch.t WHERE k = ?", int(kind)).Scan(&count); err != nil || count != 40 {
			t.Fatal(err, count)
		}
	}
}

func TestEventsDropAndMakeAgain(t *testing.T) {
	session, other := connect(t, cluster()), connect(t, cluster())
	keyspace(t, session, "go_events")
	for round := 0; round < 2; round++ {
		run(t, session, "CREATE TABLE go_events.t (k int PRIMARY KEY)")
		found := false
		for try := 0; try < 200 && !found; try++ {
			metadata, err := other.KeyspaceMetadata("go_events")
			found = err == nil && metadata.Tables["t"] != nil
			time.Sleep(50 * time.Millisecond)
		}
		if !found {
			t.Fatal("the event did not reach the other session")
		}
		run(t, session, "INSERT INTO go_events.t (k) VALUES (?)", round)
		run(t, session, "DROP TABLE go_events.t")
		if err := other.AwaitSchemaAgreement(testContext(t)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCompressionAndVersions(t *testing.T) {
	for _, version := range []int{3, 4} {
		config := cluster()
		config.ProtoVersion = version
		config.Compressor = &gocql.SnappyCompressor{}
		session := connect(t, config)
		iter := session.Query("SELECT column_name FROM system_schema.columns").Iter()
		if iter.NumRows() < 100 {
			t.Fatal(version, iter.NumRows(), iter.Close())
		}
	}
}

func TestConcurrentRequests(t *testing.T) {
	session := connect(t, cluster())
	keyspace(t, session, "go_many")
	run(t, session, "CREATE TABLE go_many.t (k int PRIMARY KEY, v text)")
	var group sync.WaitGroup
	failures := make(chan error, 16)
	for worker := 0; worker < 16; worker++ {
		group.Add(1)
		go func(worker int) {
			defer group.Done()
			for i := 0; i < 100; i++ {
				k := worker*100 + i
				if err := session.Query("INSERT INTO go_many.t (k, v) VALUES (?, ?)", k, fmt.Sprint("v", k)).Exec(); err != nil {
					failures <- err
					return
				}
				var v string
				if err := session.Query("SELECT v FROM go_many.t WHERE k = ?", k).Scan(&v); err != nil || v != fmt.Sprint("v", k) {
					failures <- fmt.Errorf("%d: %v %v", k, v, err)
					return
				}
			}
		}(worker)
	}
	group.Wait()
	close(failures)
	for err := range failures {
		t.Error(err)
	}
}

func TestErrors(t *testing.T) {
	session := connect(t, cluster())
	var refused gocql.RequestError
	if err := session.Query("SELEC").Exec(); !errors.As(err, &refused) || refused.Code() != gocql.ErrCodeSyntax {
		t.Fatal(err)
	}
	if err := session.Query("SELECT nosuch FROM system.local").Exec(); !errors.As(err, &refused) || refused.Code() != gocql.ErrCodeInvalid {
		t.Fatal(err)
	}
}
