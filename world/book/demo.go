package book

import (
	"fmt"

	"github.com/callsheet/callsheet/world"
)

// demo is the ledger demonstration (spec/world-reference.md §9): one balance,
// three actions, and rules for what succeeds and what fails.
const demo = `{
"action_schema": {"actions": [
	{"name": "deposit", "description": "Add funds to the current balance.", "arguments": {"amount": {"type": "number", "required": true}}},
	{"name": "withdraw", "description": "Remove funds when the balance is sufficient.", "arguments": {"amount": {"type": "number", "required": true}}},
	{"name": "balance", "description": "Read the current balance."}]},
"state_schema": {"fields": [{"path": "world.balance", "type": "number", "description": "Available account balance.", "default": 100.0}]},
"rules": [
	{"id": "deposit_success", "action_type": "deposit", "description": "Deposits increase the available balance.", "priority": 10, "renderer": "ledger",
		"effects": [{"op": "increment", "path": "world.balance", "value": {"$action_arg": "amount"}}],
		"observation_template": "Deposited {action.arguments.amount}. Balance: {state_after.world.balance}"},
	{"id": "withdraw_success", "action_type": "withdraw", "description": "A covered withdrawal decreases the balance.", "priority": 10, "renderer": "ledger",
		"conditions": [{"left": {"path": "world.balance"}, "op": "gte", "right": {"action_arg": "amount"}}],
		"effects": [{"op": "decrement", "path": "world.balance", "value": {"$action_arg": "amount"}}],
		"observation_template": "Withdrew {action.arguments.amount}. Balance: {state_after.world.balance}"},
	{"id": "withdraw_insufficient", "action_type": "withdraw", "description": "An uncovered withdrawal fails without changing state.", "priority": 10, "renderer": "ledger",
		"conditions": [{"left": {"path": "world.balance"}, "op": "lt", "right": {"action_arg": "amount"}}], "outcome": "failure",
		"observation_template": "Insufficient funds. Balance: {state_after.world.balance}"},
	{"id": "balance_read", "action_type": "balance", "description": "Reading the balance has no state effect.", "priority": 10, "renderer": "ledger",
		"observation_template": "Balance: {state_after.world.balance}"}],
"invariants": [{"id": "nonnegative_balance", "description": "Available balance must never be negative.",
	"condition": {"left": {"path": "world.balance"}, "op": "gte", "right": {"literal": 0}}}],
"renderers": [{"id": "ledger", "action_types": ["deposit", "withdraw", "balance"], "required_fields": ["state_after.world.balance"],
	"instructions": "Return one concise status line and preserve numeric values.", "examples": ["Balance: 100.0", "Insufficient funds. Balance: 20.0"]}],
"notes": [
	{"id": "balance_format", "kind": "format", "statement": "Balances are rendered as decimal numbers with one fractional digit, e.g. 75.0.", "action_types": ["deposit", "withdraw", "balance"]},
	{"id": "single_account", "kind": "concept", "statement": "The environment holds exactly one account; every action refers to its balance."}]
}`

// Demo is the ledger demonstration.
func Demo() (*Artifacts, *Config) {
	var a Artifacts
	if err := world.Decode([]byte(demo), &a); err != nil {
		panic(fmt.Sprintf("book: the demonstration: %v", err))
	}
	c := Defaults()
	c.EnvironmentID, c.Name, c.Domains, c.ConstructionKind = "demo.ledger", "Trace2Env Ledger Demo", []string{"tool", "transaction"}, Authored
	c.Description = "A tiny balance environment demonstrating contrastive success/failure rules."
	return &a, &c
}
