// Program gitops-health prints what GitOps tools take objects for: kstatus, which Flux and others use, and a health
// script in Lua, as Argo CD runs it.
//
// It reads {"script": "…", "objects": […]} from stdin and writes [{"kstatus": {…}, "argo": {…}}, …] to stdout, each with
// "status" and "message".
package main

import (
	"encoding/json"
	"fmt"
	"os"

	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

type input struct {
	Script  string           `json:"script"`
	Objects []map[string]any `json:"objects"`
}

type health struct {
	Status  string `json:"status"`
	Message string `json:"message"`
}

type result struct {
	Kstatus health `json:"kstatus"`
	Argo    health `json:"argo"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "gitops-health:", err)
		os.Exit(1)
	}
}

func run() error {
	var in input
	if err := json.NewDecoder(os.Stdin).Decode(&in); err != nil {
		return err
	}
	results := []result{}
	for _, object := range in.Objects {
		computed, err := status.Compute(&unstructured.Unstructured{Object: withIntegers(object).(map[string]any)})
		if err != nil {
			return err
		}
		argo, err := runScript(in.Script, object)
		if err != nil {
			return err
		}
		results = append(results, result{health{computed.Status.String(), computed.Message}, argo})
	}
	return json.NewEncoder(os.Stdout).Encode(results)
}

// withIntegers turns whole numbers into int64, as clients of Kubernetes decode them.
func withIntegers(value any) any {
	switch typed := value.(type) {
	case float64:
		if typed == float64(int64(typed)) {
			return int64(typed)
		}
	case []any:
		for i, item := range typed {
			typed[i] = withIntegers(item)
		}
	case map[string]any:
		for key, item := range typed {
			typed[key] = withIntegers(item)
		}
	}
	return value
}

// runScript runs a health script with the libraries that Argo CD gives it: none of os and io.
func runScript(script string, object map[string]any) (health, error) {
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	for name, open := range map[string]lua.LGFunction{
		lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable, lua.StringLibName: lua.OpenString,
	} {
		if err := state.CallByParam(lua.P{Fn: state.NewFunction(open), Protect: true}, lua.LString(name)); err != nil {
			return health{}, err
		}
	}
	state.SetGlobal("obj", luaValue(state, object))
	if err := state.DoString(script); err != nil {
		return health{}, err
	}
	returned, ok := state.Get(-1).(*lua.LTable)
	if !ok {
		return health{}, fmt.Errorf("the script returned %s, not a table", state.Get(-1).Type())
	}
	return health{lua.LVAsString(returned.RawGetString("status")), lua.LVAsString(returned.RawGetString("message"))}, nil
}

func luaValue(state *lua.LState, value any) lua.LValue {
	switch typed := value.(type) {
	case bool:
		return lua.LBool(typed)
	case int64:
		return lua.LNumber(typed)
	case float64:
		return lua.LNumber(typed)
	case string:
		return lua.LString(typed)
	case []any:
		list := state.CreateTable(len(typed), 0)
		for _, item := range typed {
			list.Append(luaValue(state, item))
		}
		return list
	case map[string]any:
		table := state.CreateTable(0, len(typed))
		for key, item := range typed {
			table.RawSetString(key, luaValue(state, item))
		}
		return table
	}
	return lua.LNil
}
