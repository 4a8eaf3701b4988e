// Go, Testcontainers: github.com/testcontainers/testcontainers-go, github.com/gocql/gocql. The image is loaded first
// (docker load).
package helenus

import (
	"context"
	"strings"
	"testing"

	"github.com/gocql/gocql"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/wait"
)

func TestRelease(t *testing.T) {
	ctx := context.Background()
	node, err := testcontainers.GenericContainer(ctx, testcontainers.GenericContainerRequest{
		ContainerRequest: testcontainers.ContainerRequest{
			Image:        "helenus:0.1.0",
			ExposedPorts: []string{"9042/tcp"},
			Env:          map[string]string{"MAX_HEAP_SIZE": "256M"},
			WaitingFor:   wait.ForLog("Startup complete"),
		},
		Started: true,
	})
	testcontainers.CleanupContainer(t, node)
	if err != nil {
		t.Fatal(err)
	}
	address, err := node.PortEndpoint(ctx, "9042/tcp", "")
	if err != nil {
		t.Fatal(err)
	}
	cluster := gocql.NewCluster(address)
	// the port of the host is not the one that the node tells
	cluster.DisableInitialHostLookup = true
	session, err := cluster.CreateSession()
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	var release string
	if err := session.Query("SELECT release_version FROM system.local").Scan(&release); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(release, "5.0") {
		t.Fatal(release)
	}
}
