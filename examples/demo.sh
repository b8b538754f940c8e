#!/usr/bin/env bash
# The main job on real plans: check, run, what a failure looks like, a person's
# answer, a record that can be proved, a model, a rehearsal. Nothing outside this
# directory is touched but a temporary one, where the record is kept.
set -euo pipefail
cd "$(dirname "$0")"
callsheet=../bin/callsheet
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export XDG_STATE_HOME=$scratch/state

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
try() { # what is wanted, then a command
	local want=$1 got=0
	shift
	printf '$ callsheet'
	for word; do
		word=${word//$scratch/SCRATCH}
		case $word in *' '*) word="\"$word\"" ;; esac
		printf ' %s' "$word"
	done
	echo
	"$callsheet" "$@" || got=$?
	[ "$got" = "$want" ] || { echo "exit $got, want $want"; exit 1; }
}

say "A plan that a model wrote, on the demonstration tools"
try 0 check first.json --tools demo
try 0 graph first.json
try 0 run first.json --tools demo --no-journal
try 0 run first.json --tools demo --no-journal --json

say "A faulty plan: every fault with its place and, where it is known, the repair"
try 1 check faulty.json --tools demo

say "What goes wrong at run time stays with its step"
try 1 run failures.json --tools demo --no-journal

say "Arithmetic, exact: 9007199254740993 is not a double"
try 0 run average.json --tools arith --no-journal --json

say "A payment to whom a tool named: a person is asked, and the run waits"
export SHOP_KEY=not-a-real-key
shop=(--config refund/callsheet.yaml)
try 4 run refund/plan.json "${shop[@]}" --on-ask pause
id=$("$callsheet" runs --json --limit 1 | grep -oE '[a-z2-7]{26}')
try 0 approve "$id" refund --resume

say "The record of that run: shown, proved, and caught when it was changed"
try 0 show "$id"
try 0 audit verify "$id"
"$callsheet" audit export "$id" | sed 's/12.50/99.50/' >"$scratch/forged"
try 1 audit verify "$scratch/forged"

say "A world made of that run, and the plan rehearsed on it: nothing is called"
try 0 world build --from-runs "$id" --output "$scratch/shop"
try 0 rehearse refund/plan.json "${shop[@]}" --world "$scratch/shop"

say "A world with rules: the ledger refuses what the balance does not cover"
try 0 world init-demo --output "$scratch/ledger"
try 1 rehearse ledger/plan.json --tools ledger/tools.json --world "$scratch/ledger"

say "A model writes a plan, is told what is wrong with it, and repairs it (replies from a file)"
try 0 plan "Count the words of a document about go" --tools demo --model scripted:agent/plan.json --run

say "A model calls tools and answers in the shape of a schema (replies from a file)"
try 0 agent --task "Count the words of a document about go" --tools demo --schema agent/answer.json --model scripted:agent/replies.json

if command -v node >/dev/null && [ -f ../.cache/npm/node_modules/@modelcontextprotocol/server-filesystem/dist/index.js ]; then
	say "Real files, through an MCP server"
	cd files
	callsheet=../../bin/callsheet
	mkdir -p work
	rm -f work/*.txt
	try 0 check plan.json --config callsheet.yaml
	try 0 run plan.json --config callsheet.yaml --no-journal
	cat work/copy.txt
	echo
else
	say "node is not here, so the MCP file server is left out"
fi
