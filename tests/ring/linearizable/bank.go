package main

import (
	"encoding/json"
	"fmt"

	"github.com/anishathalye/porcupine"
)

// Accounts of a partition, and what each holds at first: as tests/ring/misfortune/workloads.py opens them.
const (
	accounts = 4
	each     = 100
)

type balances [accounts]int

// bankInput is a read, or a transfer on condition that both accounts hold what the client had read.
type bankInput struct {
	isRead               bool
	giver, taker, amount int
	had                  [2]int
}

type bankOutput struct {
	isUnknown, isApplied bool
	found                balances
}

// bankModel is the accounts of one partition.
var bankModel = porcupine.Model{
	Init: func() any { return balances{each, each, each, each} },
	Step: func(state, input, output any) (bool, any) {
		now, asked, told := state.(balances), input.(bankInput), output.(bankOutput)
		if asked.isRead {
			return told.found == now, now
		}
		holds := now[asked.giver] == asked.had[0] && now[asked.taker] == asked.had[1]
		after := now
		after[asked.giver] -= asked.amount
		after[asked.taker] += asked.amount
		switch {
		case told.isUnknown && !holds:
			return true, now
		case told.isUnknown || told.isApplied:
			return holds, after
		default:
			return !holds, now
		}
	},
	DescribeOperation: func(input, output any) string {
		asked, told := input.(bankInput), output.(bankOutput)
		if asked.isRead {
			return fmt.Sprint(told.found)
		}
		words := map[[2]bool]string{{true, false}: "unknown", {false, true}: "applied", {false, false}: "refused"}
		return fmt.Sprintf("%d from %d to %d if %v: %s", asked.amount, asked.giver, asked.taker, asked.had, words[[2]bool{told.isUnknown, told.isApplied}])
	},
}

func decodeBank(line record) (input, output any, err error) {
	if line.Op == "read" {
		var rows []int
		if err := json.Unmarshal(line.Out, &rows); err != nil || len(rows) != accounts {
			return nil, nil, fmt.Errorf("%d accounts are expected: %w", accounts, err)
		}
		return bankInput{isRead: true}, bankOutput{found: balances(rows)}, nil
	}
	var asked struct {
		Giver  int    `json:"giver"`
		Taker  int    `json:"taker"`
		Amount int    `json:"amount"`
		Had    [2]int `json:"had"`
	}
	if err := json.Unmarshal(line.In, &asked); err != nil {
		return nil, nil, err
	}
	var isApplied bool
	if line.To != nil {
		if err := json.Unmarshal(line.Out, &isApplied); err != nil {
			return nil, nil, err
		}
	}
	transfer := bankInput{giver: asked.Giver, taker: asked.Taker, amount: asked.Amount, had: asked.Had}
	return transfer, bankOutput{isUnknown: line.To == nil, isApplied: isApplied}, nil
}
