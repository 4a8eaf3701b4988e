// Judges histories of conditional statements with Porcupine, a checker of linearizability that knows nothing of this tree.
//
//	linearizable [-timeout 60s] [-pictures DIR] swaps|bank HISTORY.jsonl
//
// Each key is judged on its own. A history that is not linearizable is a line on standard output, and a picture in DIR.
// The last line is "N linearizable, N not, N undecided"; the program ends with 1 unless all are linearizable.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sort"
	"time"

	"github.com/anishathalye/porcupine"
)

// record is a line of a history; To is nil where the outcome is unknown.
type record struct {
	Client int             `json:"client"`
	Op     string          `json:"op"`
	Key    int             `json:"key"`
	In     json.RawMessage `json:"in"`
	Out    json.RawMessage `json:"out"`
	From   int64           `json:"from"`
	To     *int64          `json:"to"`
}

// subject says how the lines of a workload become operations of its model, and which operations of a key matter.
type subject struct {
	model  porcupine.Model
	decode func(record) (input, output any, err error)
	prune  func([]porcupine.Operation) []porcupine.Operation
}

var subjects = map[string]subject{
	"swaps": {model: swapModel, decode: decodeSwap, prune: pruneSwaps},
	"bank":  {model: bankModel, decode: decodeBank, prune: func(all []porcupine.Operation) []porcupine.Operation { return all }},
}

func main() {
	timeout := flag.Duration("timeout", time.Minute, "for each key")
	pictures := flag.String("pictures", "", "where pictures of histories that are not linearizable go")
	flag.Parse()
	judged, known := subjects[flag.Arg(0)]
	if !known || flag.NArg() != 2 {
		fmt.Fprintln(os.Stderr, "usage: linearizable [-timeout 60s] [-pictures DIR] swaps|bank HISTORY.jsonl")
		os.Exit(2)
	}
	histories, err := read(flag.Arg(1), judged)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	counts := map[porcupine.CheckResult]int{}
	for _, key := range keys(histories) {
		result, info := porcupine.CheckOperationsVerbose(judged.model, judged.prune(histories[key]), *timeout)
		counts[result]++
		if result == porcupine.Ok {
			continue
		}
		fmt.Printf("%s: key %d, %d operations: %s\n", flag.Arg(0), key, len(histories[key]), result)
		if *pictures != "" {
			path := filepath.Join(*pictures, fmt.Sprintf("%s-%d.html", flag.Arg(0), key))
			if err := porcupine.VisualizePath(judged.model, info, path); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		}
	}
	fmt.Printf("%d linearizable, %d not, %d undecided\n", counts[porcupine.Ok], counts[porcupine.Illegal], counts[porcupine.Unknown])
	if counts[porcupine.Illegal]+counts[porcupine.Unknown] > 0 {
		os.Exit(1)
	}
}

func keys(histories map[int][]porcupine.Operation) []int {
	found := make([]int, 0, len(histories))
	for key := range histories {
		found = append(found, key)
	}
	sort.Ints(found)
	return found
}

// read returns the operations of each key. A read without an answer says nothing and is left out; a change without one may
// take effect at any later moment: it ends never.
func read(path string, judged subject) (map[int][]porcupine.Operation, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	histories := map[int][]porcupine.Operation{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var line record
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			return nil, err
		}
		if line.To == nil && line.Op == "read" {
			continue
		}
		input, output, err := judged.decode(line)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", lines.Text(), err)
		}
		ended := int64(math.MaxInt64)
		if line.To != nil {
			ended = *line.To
		}
		one := porcupine.Operation{ClientId: line.Client, Input: input, Output: output, Call: line.From, Return: ended}
		histories[line.Key] = append(histories[line.Key], one)
	}
	return histories, lines.Err()
}
