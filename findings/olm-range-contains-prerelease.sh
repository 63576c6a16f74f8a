#!/usr/bin/env bash
# In OLM's skipRange, <0.3.0 contains 0.3.0-rc.1. In Helm's ranges, it does not.
#
# Versions:   github.com/blang/semver 4.0.0 (the ranges of OLM) and github.com/Masterminds/semver 3.4.0 (those of
#             Helm).
# Guess:      A range without a pre-release in it contains no pre-releases, in both.
# Behaviour:  blang/semver only compares, and 0.3.0-rc.1 is less than 0.3.0. Masterminds/semver ignores pre-releases
#             unless the range names one. `<0.3.0-0` excludes them in OLM.
# Matters:    skipRange `>=0.1.0 <0.3.0` of a release 0.3.0 upgrades users of 0.3.0-rc.1 too, and the range of release
#             0.2.5 `<0.2.5` also takes 0.2.5-beta. The same string in a chart's kubeVersion behaves the other way
#             round: `>=1.30.0` rejects 1.33.1-gke.100, and OLM accepts it, but rejects 1.30.0-gke.100.
#
# Output, seen on 2026-11-30:
#   go version go1.26.8 linux/amd64
#   >=0.1.0 <0.3.0  contains 0.2.0?          OLM: true  Helm: true
#   >=0.1.0 <0.3.0  contains 0.2.1-rc.1?     OLM: true  Helm: false
#   >=0.1.0 <0.3.0  contains 0.3.0-rc.1?     OLM: true  Helm: false
#   >=1.30.0        contains 1.33.1-gke.100? OLM: true  Helm: false
#   >=1.30.0        contains 1.30.0-gke.100? OLM: false Helm: false
#   >=1.30.0        contains 1.30.0+k3s1?    OLM: true  Helm: true
#   As described: OLM's ranges contain pre-releases, even those of their upper end. Helm's contain none.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >main.go <<'GO'
package main

import (
	"fmt"
	"os"

	helm "github.com/Masterminds/semver/v3"
	olm "github.com/blang/semver/v4"
)

func main() {
	changed := false
	for _, each := range []struct {
		text, version string
		olm, helm     bool
	}{
		{">=0.1.0 <0.3.0", "0.2.0", true, true},
		{">=0.1.0 <0.3.0", "0.2.1-rc.1", true, false},
		{">=0.1.0 <0.3.0", "0.3.0-rc.1", true, false},
		{">=1.30.0", "1.33.1-gke.100", true, false},
		{">=1.30.0", "1.30.0-gke.100", false, false},
		{">=1.30.0", "1.30.0+k3s1", true, true},
	} {
		inOLM := olm.MustParseRange(each.text)(olm.MustParse(each.version))
		constraint, err := helm.NewConstraint(each.text)
		if err != nil {
			panic(err)
		}
		inHelm := constraint.Check(helm.MustParse(each.version))
		fmt.Printf("%-15s contains %-15s OLM: %-5v Helm: %v\n", each.text, each.version+"?", inOLM, inHelm)
		changed = changed || inOLM != each.olm || inHelm != each.helm
	}
	if changed {
		fmt.Println("CHANGED: a range contains other versions.")
		os.Exit(1)
	}
	fmt.Println("As described: OLM's ranges contain pre-releases, even those of their upper end. Helm's contain none.")
}
GO
export GOPATH="$folder/go" GOFLAGS=-modcacherw
go version
go mod init example.com/ranges 2>/dev/null
timeout 120 go get github.com/blang/semver/v4@v4.0.0 github.com/Masterminds/semver/v3@v3.4.0 2>go.log || { cat go.log; exit 1; }
timeout 240 go run .
