// The gocql driver as a client of a ring: what tests/ring/drivers asks for, a line of JSON an answer.
//
//	go run ./ring ADDRESS PORT
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gocql/gocql"
)

const patience = 60 * time.Second

// client is a session with the policy that knows which hosts are up.
type client struct {
	session *gocql.Session
	hosts   *hosts
}

// hosts passes everything to the token-aware policy and notes which hosts are up.
type hosts struct {
	gocql.HostSelectionPolicy
	mutex sync.Mutex
	up    map[string]bool
}

func (hosts *hosts) note(host *gocql.HostInfo, isUp bool) {
	hosts.mutex.Lock()
	defer hosts.mutex.Unlock()
	hosts.up[host.ConnectAddress().String()] = isUp
}

func (hosts *hosts) AddHost(host *gocql.HostInfo) {
	hosts.note(host, true)
	hosts.HostSelectionPolicy.AddHost(host)
}

func (hosts *hosts) RemoveHost(host *gocql.HostInfo) {
	hosts.note(host, false)
	hosts.HostSelectionPolicy.RemoveHost(host)
}

func (hosts *hosts) HostUp(host *gocql.HostInfo) {
	hosts.note(host, true)
	hosts.HostSelectionPolicy.HostUp(host)
}

func (hosts *hosts) HostDown(host *gocql.HostInfo) {
	hosts.note(host, false)
	hosts.HostSelectionPolicy.HostDown(host)
}

func (hosts *hosts) known() []string {
	hosts.mutex.Lock()
	defer hosts.mutex.Unlock()
	found := []string{}
	for address, isUp := range hosts.up {
		if isUp {
			found = append(found, address)
		}
	}
	sort.Strings(found)
	return found
}

func (client *client) coordinators(name string, count int) ([]string, error) {
	found := []string{}
	for key := 0; key < count; key++ {
		iter := client.session.Query("SELECT k FROM ring_"+name+".t WHERE k = ?", key).Iter()
		host := iter.Host()
		if err := iter.Close(); err != nil {
			return nil, err
		}
		found = append(found, host.ConnectAddress().String())
	}
	return found, nil
}

func (client *client) awaited(address string, isUp bool) bool {
	is := func() bool {
		for _, known := range client.hosts.known() {
			if known == address {
				return true
			}
		}
		return false
	}
	for until := time.Now().Add(patience); is() != isUp && time.Now().Before(until); {
		time.Sleep(50 * time.Millisecond)
	}
	return is() == isUp
}

func distinct(all []string) []string {
	seen, found := map[string]bool{}, []string{}
	for _, one := range all {
		if !seen[one] {
			seen[one], found = true, append(found, one)
		}
	}
	sort.Strings(found)
	return found
}

func (client *client) answer(verb, word string) (interface{}, error) {
	count, _ := strconv.Atoi(word)
	switch verb {
	case "hosts":
		return client.hosts.known(), nil
	case "aware":
		return client.coordinators("one", count)
	case "spread":
		found, err := client.coordinators("three", count)
		return distinct(found), err
	case "schema":
		// the driver waits for agreement and says so by an error
		err := client.session.Query("CREATE TABLE ring_three." + word + " (k int PRIMARY KEY)").Exec()
		return err == nil, err
	case "up", "down":
		return client.awaited(word, verb == "up"), nil
	}
	return nil, fmt.Errorf("unknown verb %s", verb)
}

func main() {
	port, _ := strconv.Atoi(os.Args[2])
	config := gocql.NewCluster(os.Args[1])
	config.Port, config.Timeout, config.ConnectTimeout = port, 20*time.Second, 20*time.Second
	// one attempt a second finds a host that is back
	config.ReconnectInterval = time.Second
	policy := gocql.TokenAwareHostPolicy(gocql.RoundRobinHostPolicy())
	hosts := &hosts{HostSelectionPolicy: policy, up: map[string]bool{}}
	config.PoolConfig.HostSelectionPolicy = hosts
	session, err := config.CreateSession()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	defer session.Close()
	client := client{session, hosts}
	fmt.Println(`"ready"`)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		verb, word, _ := strings.Cut(lines.Text(), " ")
		answer, err := client.answer(verb, word)
		if err != nil {
			answer = map[string]string{"error": err.Error()}
		}
		line, _ := json.Marshal(answer)
		fmt.Println(string(line))
	}
}
