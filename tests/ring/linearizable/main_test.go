package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/anishathalye/porcupine"
)

// Histories by hand, a line each: what is linearizable passes, what is not is found.
var cases = []struct {
	name, subject, lines string
	want                 porcupine.CheckResult
}{
	{"a register by steps", "swaps", swap("null,1", 0, 10, `{"applied":true}`) + swap("1,2", 20, 30, `{"applied":true}`) + look("[2]", 31, 40), porcupine.Ok},
	{"two swaps from one value", "swaps", swap("null,1", 0, 10, `{"applied":true}`) + swap("1,2", 20, 30, `{"applied":true}`) + swap("1,3", 21, 31, `{"applied":true}`), porcupine.Illegal},
	{"a read of the past", "swaps", swap("null,1", 0, 10, `{"applied":true}`) + look("[]", 11, 12), porcupine.Illegal},
	{"an unknown swap is seen later", "swaps", swap("null,1", 0, -1, "null") + look("[]", 50, 60) + look("[1]", 70, 80), porcupine.Ok},
	{"an unknown swap is seen and gone", "swaps", swap("null,1", 0, -1, "null") + look("[1]", 50, 60) + look("[]", 70, 80), porcupine.Illegal},
	{"many unknown swaps that nobody sees", "swaps", look("[]", 0, 1) + many(40) + look("[]", 500, 501), porcupine.Ok},
	{"many unknown swaps, a read of none", "swaps", many(40) + look("[99]", 500, 501), porcupine.Illegal},
	{"refused with what is there", "swaps", swap("null,1", 0, 10, `{"applied":true}`) + swap("2,3", 20, 30, `{"applied":false,"found":1}`), porcupine.Ok},
	{"refused although it holds", "swaps", swap("null,1", 0, 10, `{"applied":true}`) + swap("1,3", 20, 30, `{"applied":false,"found":1}`), porcupine.Illegal},
	{"refused with what was never there", "swaps", swap("null,1", 0, 10, `{"applied":true}`) + swap("2,3", 20, 30, `{"applied":false,"found":7}`), porcupine.Illegal},
	{"a transfer", "bank", transfer("true", 0, 10) + look("[90,110,100,100]", 11, 20), porcupine.Ok},
	{"a transfer twice", "bank", transfer("true", 0, 10) + look("[80,120,100,100]", 11, 20), porcupine.Illegal},
	{"a refused transfer that holds", "bank", transfer("false", 0, 10), porcupine.Illegal},
	{"an unknown transfer", "bank", transfer("null", 0, -1) + look("[100,100,100,100]", 11, 20) + look("[90,110,100,100]", 30, 40), porcupine.Ok},
}

// many changes without an answer, each to a value of its own
func many(count int) string {
	lines := ""
	for value := 1; value <= count; value++ {
		lines += swap("null,"+strconv.Itoa(value), 2*value, -1, "null")
	}
	return lines
}

func swap(in string, from, to int, out string) string { return line("swap", "["+in+"]", from, to, out) }
func look(out string, from, to int) string            { return line("read", "null", from, to, out) }
func transfer(out string, from, to int) string {
	return line("transfer", `{"giver":0,"taker":1,"amount":10,"had":[100,100]}`, from, to, out)
}

func line(op, in string, from, to int, out string) string {
	end := "null"
	if to >= 0 {
		end = strconv.Itoa(to)
	}
	return `{"client":0,"op":"` + op + `","key":3,"in":` + in + `,"out":` + out + `,"from":` + strconv.Itoa(from) + `,"to":` + end + "}\n"
}

func TestHistories(t *testing.T) {
	for _, one := range cases {
		t.Run(strings.ReplaceAll(one.name, " ", "_"), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "history.jsonl")
			if err := os.WriteFile(path, []byte(one.lines), 0o600); err != nil {
				t.Fatal(err)
			}
			judged := subjects[one.subject]
			histories, err := read(path, judged)
			if err != nil {
				t.Fatal(err)
			}
			if got := porcupine.CheckOperationsTimeout(judged.model, judged.prune(histories[3]), 0); got != one.want {
				t.Fatalf("%s, not %s", got, one.want)
			}
		})
	}
}
