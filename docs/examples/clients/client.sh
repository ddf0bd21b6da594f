#!/bin/sh
# Each argument is a prompt of one session; the results are printed. Needs jq.
# Prompts go in as lines of JSON, one after the other; what comes out is filtered for the results.
set -eu
for prompt in "$@"; do
    jq -cn --arg text "$prompt" '{type: "user", message: {role: "user", content: $text}}'
done |
    tenuto -p --mode ask --input-format stream-json --output-format stream-json |
    jq -r 'select(.type == "result") | if .is_error then "\(.subtype): \(.error // "")" else .result end'
