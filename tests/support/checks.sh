# SPDX-License-Identifier: BSD-2-Clause
#
# For test scripts in bash: one line for each check, "ok - TEXT" or "not ok - TEXT".
#
#   check TEXT COMMAND...   ok when the command succeeds; what it printed is shown when not
#   refuse TEXT COMMAND...  ok when the command fails
#   finish                  prints the sum; fails unless all checks, and at least one, were ok
#
# $scratch is a folder that goes when the script ends.

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
passed=0
failed=0

report() {
    local good=$1 text=$2
    if $good; then
        passed=$((passed + 1))
        echo "ok - $text"
    else
        failed=$((failed + 1))
        sed 's/^/# /' "$scratch/output"
        echo "not ok - $text"
    fi
}

check() {
    local text=$1
    shift
    if "$@" >"$scratch/output" 2>&1; then report true "$text"; else report false "$text"; fi
}

refuse() {
    local text=$1
    shift
    if "$@" >"$scratch/output" 2>&1; then report false "$text"; else report true "$text"; fi
}

# The words (one a line) in two files are the same; shows which are not.
same_words() {
    diff <(sort -u "$1") <(sort -u "$2")
}

finish() {
    echo "$passed passed, $failed failed"
    [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
}
