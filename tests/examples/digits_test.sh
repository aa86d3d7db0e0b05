#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# digits_test.sh BUILD_DIR: the example as a user runs it. One line for each check.
#
# shellcheck disable=SC2317 # the functions are called through check

set -u
digits=${1:?usage: digits_test.sh BUILD_DIR}/examples/digits/digits
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
failed=0
unset SYNCEDMEM_DEVICE SYNCEDMEM_SIM

# check TEXT COMMAND...: ok when the command succeeds.
check() {
    text=$1
    shift
    if "$@"; then
        echo "ok - $text"
    else
        echo "not ok - $text"
        failed=1
    fi
}

# run NAME STATUS ARGUMENT...: runs digits, keeps what it prints, expects the exit status.
run() {
    name=$1
    wanted=$2
    shift 2
    "$digits" "$@" >"$folder/$name.out" 2>"$folder/$name.err"
    [ $? -eq "$wanted" ]
}

same() { cmp -s "$folder/$1" "$folder/$2"; }
differ() { ! same "$1" "$2"; }
empty() { [ ! -s "$folder/$1" ]; }
has() { grep -Eq -e "$2" "$folder/$1"; }
lacks() { ! has "$1" "$2"; }
one_line() { [ "$(wc -l <"$folder/$1")" -eq 1 ]; }

# lines FILE PATTERN COUNT
lines() { [ "$(grep -Ec -e "$2" "$folder/$1")" -eq "$3" ]; }

# plain NAME: NAME.out without the line that says how batches are prepared, in NAME.plain.
plain() { sed '/^  batches /d' "$folder/$1.out" >"$folder/$1.plain"; }

# prints_as NAME1 NAME2: losses, accuracies, parameters and transfers are the same.
prints_as() {
    plain "$1" && plain "$2" && same "$1.plain" "$2.plain"
}

# The number behind "accuracy on the last 297 digits:".
accurate() {
    awk '/accuracy on the last 297 digits:/ { found = $7 } END { exit !(found >= 0.92) }' \
        "$folder/$1"
}

# Of the row "together": transfers, bytes and their unit, then the same for the naive way.
row() {
    awk -v "test=$2" '
        BEGIN { size["B"] = 1; size["KiB"] = 1024; size["MiB"] = 1024 ^ 2; size["GiB"] = 1024 ^ 3 }
        function bytes(number, unit) { return number * size[unit] }
        $1 == "together" {
            gsub(",", "")
            rows++
            if (test == "moved") ok = $2 > 0 && bytes($3, $4) > 0
            if (test == "fewer") ok = $2 * 10 < $5 && bytes($3, $4) * 10 < bytes($6, $7)
            if (test == "none") ok = $2 == 0 && $3 == 0
        }
        END { exit !(rows == 1 && ok) }' "$folder/$1"
}

# ---- Learning ----

check "the defaults run on sim:0" run first 0 --device sim:0
check "nothing is on stderr" empty first.err
check "accuracy on the digits held out is at least 0.92" accurate first.out
check "lines are plain where there is no terminal" lacks first.out "$(printf '\r')"
check "each epoch has a line" lines first.out '^  epoch +[0-9]+  loss [0-9.]+  accuracy [0-9.]+$' 40
check "the device is named" has first.out '^  device +sim:0 '
check "digits are drawn and read" has first.out 'read as [0-9]'

check "the same seed runs again" run again 0 --device sim:0
check "the same seed prints the same" same first.out again.out
check "another seed runs" run other 0 --device=sim:0 --seed=2
check "another seed prints something else" differ first.out other.out
check "accuracy with another seed is at least 0.92" accurate other.out

# ---- Transfers ----

check "something moved" row first.out moved
check "less than a tenth moved of what copying around each use moves" row first.out fewer
check "the host runs" run host 0 --device host
check "nothing moves on the host" row host.out none
grep fingerprint "$folder/first.out" >"$folder/first.bits"
grep fingerprint "$folder/host.out" >"$folder/host.bits"
check "the host has the same result, bit for bit" same first.bits host.bits

# ---- Prefetching: the same, earlier ----

check "a device is prefetched to" has first.out '^  batches  prepared by another thread, 2 ahead$'
check "without a prefetch it runs" run blocking 0 --device sim:0 --prefetch 0
check "and says so" has blocking.out '^  batches  prepared one by one$'
check "blocking is the same, losses and transfers too" prints_as blocking first
check "a few epochs run, blocking" run few 0 --device sim:0 --epochs 3 --prefetch 0
for ahead in 1 3 8; do
    check "$ahead batches ahead run" run ahead 0 --device sim:0 --epochs 3 --prefetch "$ahead"
    check "$ahead ahead are the same, losses and transfers too" prints_as few ahead
done
check "the host does not prefetch unless told to" has host.out '^  batches  prepared one by one$'
check "when told to it does" run host-ahead 0 --device host --prefetch 2
check "and is the same" prints_as host host-ahead
for seed in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    SYNCEDMEM_SIM=seed=$seed
    export SYNCEDMEM_SIM
    check "the device does things late, seed $seed" run late 0 --device sim:0 --epochs 3
    check "seed $seed is the same" prints_as few late
done
SYNCEDMEM_SIM=latency=3ms
check "transfers are slow" run slow 0 --device sim:0 --epochs 3
check "slow is the same" prints_as few slow
SYNCEDMEM_SIM=launch=200us
check "kernels are slow" run slow 0 --device sim:0 --epochs 3
check "slow is the same" prints_as few slow
unset SYNCEDMEM_SIM

# ---- Choosing a device ----

SYNCEDMEM_DEVICE=sim:0
export SYNCEDMEM_DEVICE
check "SYNCEDMEM_DEVICE chooses" run named 0 --epochs 1
check "then no GPU is missed" lacks named.out '^no GPU found'
SYNCEDMEM_DEVICE=nowhere:0
check "a wrong SYNCEDMEM_DEVICE is not replaced by another" run misnamed 1 --epochs 1
unset SYNCEDMEM_DEVICE

# ---- Failures ----

check "an unknown device fails" run unknown 1 --device nowhere:0
check "and says so in a line" has unknown.err '^digits: NOT_FOUND: .*nowhere:0'
check "of which there is one" one_line unknown.err
for failure in fail_copy=1 fail_copy=2 fail_copy=3 fail_copy=4 fail_copy=5 fail_copy=30 \
    fail_copy_late=1 fail_copy_late=2 fail_copy_late=3 fail_copy_late=4 fail_copy_late=30; do
    SYNCEDMEM_SIM=$failure
    export SYNCEDMEM_SIM
    for ahead in 0 1 2; do
        check "$failure, $ahead ahead, fails" run copy 1 --device sim:0 --prefetch $ahead
        check "and says so" has copy.err '^digits: DEVICE_ERROR: .'
        check "in one line" one_line copy.err
    done
done
SYNCEDMEM_SIM=memory=64k
check "a small device fails" run small 1 --device sim:0
check "and says so" has small.err '^digits: OUT_OF_DEVICE_MEMORY: .'
unset SYNCEDMEM_SIM
check "a missing file fails" run missing 1 --data "$folder/none.csv"
check "and is named" has missing.err 'none\.csv'
echo "1,2,3" >"$folder/short.csv"
check "a malformed file fails" run malformed 1 --data "$folder/short.csv"
check "and its line is named" has malformed.err 'short\.csv:1:'

# ---- Options ----

check "--help helps" run help 0 --help
check "and says how" has help.out '^Usage: digits'
for wrong in --unknown digits --seed --epochs=0 --epochs=-1 --epochs=1x --seed=x --seed=-1 \
    --seed=18446744073709551616 --prefetch --prefetch=9 --prefetch=x --device= --data=; do
    check "$wrong is refused" run wrong 2 "$wrong"
    check "and why is said" has wrong.err '^digits: '
done

exit $failed
