package main

import (
	"encoding/json"
	"fmt"

	"github.com/anishathalye/porcupine"
)

// absent is the value of a register without a row; values that clients write begin at 1.
const absent = 0

// swapInput is a read, or a change from one value to another.
type swapInput struct {
	isRead   bool
	old, new int
}

// swapOutput is what the client was told: of a read, and of a change that was not applied, what was there.
type swapOutput struct {
	isUnknown, isApplied bool
	found                int
}

// swapModel is one register that knows compare-and-set.
var swapModel = porcupine.Model{
	Init: func() any { return absent },
	Step: func(state, input, output any) (bool, any) {
		now, asked, told := state.(int), input.(swapInput), output.(swapOutput)
		switch {
		case asked.isRead:
			return told.found == now, now
		case told.isUnknown && now != asked.old:
			return true, now
		case told.isUnknown || told.isApplied:
			return now == asked.old, asked.new
		default:
			return now != asked.old && now == told.found, now
		}
	},
	DescribeOperation: func(input, output any) string {
		asked, told := input.(swapInput), output.(swapOutput)
		switch {
		case asked.isRead:
			return fmt.Sprintf("read: %d", told.found)
		case told.isUnknown:
			return fmt.Sprintf("%d to %d: unknown", asked.old, asked.new)
		case told.isApplied:
			return fmt.Sprintf("%d to %d", asked.old, asked.new)
		default:
			return fmt.Sprintf("%d to %d: refused, %d", asked.old, asked.new, told.found)
		}
	},
}

// pruneSwaps leaves out changes without an answer whose value nobody has met. Such a change may stand behind everything else, so what
// remains is linearizable if and only if the whole is; while it is there, the search tries it at every place.
func pruneSwaps(all []porcupine.Operation) []porcupine.Operation {
	met := map[int]bool{absent: true}
	for _, one := range all {
		met[one.Input.(swapInput).old] = true
		met[one.Output.(swapOutput).found] = true
	}
	kept := make([]porcupine.Operation, 0, len(all))
	for _, one := range all {
		if !one.Output.(swapOutput).isUnknown || met[one.Input.(swapInput).new] {
			kept = append(kept, one)
		}
	}
	return kept
}

func decodeSwap(line record) (input, output any, err error) {
	if line.Op == "read" {
		var rows []int
		if err := json.Unmarshal(line.Out, &rows); err != nil {
			return nil, nil, err
		}
		found := absent
		if len(rows) > 0 {
			found = rows[0]
		}
		return swapInput{isRead: true}, swapOutput{found: found}, nil
	}
	var asked []*int
	if err := json.Unmarshal(line.In, &asked); err != nil || len(asked) != 2 {
		return nil, nil, fmt.Errorf("two values are expected: %w", err)
	}
	if line.To == nil {
		return swapInput{old: value(asked[0]), new: value(asked[1])}, swapOutput{isUnknown: true}, nil
	}
	var told struct {
		Applied bool `json:"applied"`
		Found   *int `json:"found"`
	}
	if err := json.Unmarshal(line.Out, &told); err != nil {
		return nil, nil, err
	}
	return swapInput{old: value(asked[0]), new: value(asked[1])}, swapOutput{isApplied: told.Applied, found: value(told.Found)}, nil
}

func value(given *int) int {
	if given == nil {
		return absent
	}
	return *given
}
