#!/usr/bin/env bash
# The main job on real plans: check, run, and what a failure looks like.
set -euo pipefail
cd "$(dirname "$0")"
callsheet=../bin/callsheet

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
try() { # what is wanted, then a command
	local want=$1 got=0
	shift
	printf '$ callsheet %s\n' "$*"
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
