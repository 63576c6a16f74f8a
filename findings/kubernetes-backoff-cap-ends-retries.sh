#!/usr/bin/env bash
# The Cap of a wait.Backoff does not only limit the pauses: when it is reached, the retries end.
#
# Versions:   k8s.io/apimachinery 0.36.1.
# Guess:      Backoff{Duration: 10 ms, Factor: 2, Steps: 10, Cap: 100 ms} makes 10 attempts, with pauses of 10, 20, 40,
#             80, 100, 100 … ms.
# Behaviour:  When the next pause would be longer than Cap, the remaining steps become 0. ExponentialBackoff makes 4
#             attempts, and a single one without a retry if Duration is more than half of Cap. A loop around Step() goes
#             on, and gets Cap forever, so the same value means something else there.
# Matters:    client-go's retry.OnError and retry.RetryOnConflict take such a value. Someone adds a Cap against long
#             pauses, or raises Steps to survive a longer outage, and the program gives up after seconds, as before.
#
# Output, seen on 2026-12-01:
#   go version go1.26.8 linux/amd64
#   Duration  10 ms, Factor 2, Cap   0 ms, Steps    7: 7 attempts
#   Duration  10 ms, Factor 2, Cap 100 ms, Steps   10: 4 attempts
#   Duration  10 ms, Factor 2, Cap 100 ms, Steps 1000: 4 attempts
#   Duration  60 ms, Factor 2, Cap 100 ms, Steps   10: 1 attempts
#   Duration 100 ms, Factor 2, Cap 100 ms, Steps   10: 1 attempts
#   Step() eight times, with Steps 10 and Cap 100 ms: 10 20 40 80 100 100 100 100
#   As described: ExponentialBackoff gives up when a pause would exceed Cap, whatever Steps is.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >main.go <<'GO'
package main

import (
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// attempts counts the calls of a function that never succeeds.
func attempts(backoff wait.Backoff) int {
	count := 0
	_ = wait.ExponentialBackoff(backoff, func() (bool, error) {
		count++
		return false, nil
	})
	return count
}

func main() {
	changed := false
	for _, each := range []struct {
		duration, cap   time.Duration
		steps, attempts int
	}{
		{10, 0, 7, 7},
		{10, 100, 10, 4},
		{10, 100, 1000, 4},
		{60, 100, 10, 1},
		{100, 100, 10, 1},
	} {
		backoff := wait.Backoff{Duration: each.duration * time.Millisecond, Factor: 2, Steps: each.steps, Cap: each.cap * time.Millisecond}
		count := attempts(backoff)
		fmt.Printf("Duration %3d ms, Factor 2, Cap %3d ms, Steps %4d: %d attempts\n", each.duration, each.cap, each.steps, count)
		changed = changed || count != each.attempts
	}
	backoff := wait.Backoff{Duration: 10 * time.Millisecond, Factor: 2, Steps: 10, Cap: 100 * time.Millisecond}
	pauses := ""
	for range 8 {
		pauses += fmt.Sprintf(" %d", backoff.Step().Milliseconds())
	}
	fmt.Printf("Step() eight times, with Steps 10 and Cap 100 ms:%s\n", pauses)
	if changed || pauses != " 10 20 40 80 100 100 100 100" {
		fmt.Println("CHANGED: Cap has another effect.")
		os.Exit(1)
	}
	fmt.Println("As described: ExponentialBackoff gives up when a pause would exceed Cap, whatever Steps is.")
}
GO
export GOPATH="$folder/go" GOFLAGS=-modcacherw
go version
go mod init example.com/backoff 2>/dev/null
timeout 120 go get k8s.io/apimachinery/pkg/util/wait@v0.36.1 2>go.log || { cat go.log; exit 1; }
timeout 240 go run .
