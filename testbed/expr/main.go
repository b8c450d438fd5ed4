// Command expr answers conditions the way Argo Rollouts does: it compiles each with the
// answer of a provider as `result` and runs it. What it prints is a table that the tests of
// stateward's own evaluator replay without Go.
//
// Run by `cargo xtask generate conditions`, as:
//
//	expr < conditions.txt     for conditions that somebody wrote
//	expr random COUNT SEED    for conditions that nobody would write
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/expr-lang/expr"
)

// row is a line of the table. Outcome is "true", "false", "compile error", "run error", or for
// another value its Go type, a colon and the value.
type row struct {
	Result     json.RawMessage `json:"result"`
	Numbers    bool            `json:"numbers,omitempty"`
	Expression string          `json:"expression"`
	Outcome    string          `json:"outcome"`
}

func main() {
	var err error
	switch {
	case len(os.Args) == 1:
		err = written()
	case len(os.Args) == 4 && os.Args[1] == "random":
		err = random(os.Args[2], os.Args[3])
	default:
		err = fmt.Errorf("usage: expr < conditions.txt, or expr random COUNT SEED")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "expr:", err)
		os.Exit(1)
	}
}

// written answers a text: a line that starts with "=" gives the result for the conditions in the
// lines below it, "= numbers" a list of floats as Prometheus gives it, "//" starts a comment.
func written() error {
	scanner := bufio.NewScanner(os.Stdin)
	scanner.Buffer(nil, 1<<20)
	result, numbers := "null", false
	for scanner.Scan() {
		line := scanner.Text()
		switch {
		case strings.TrimSpace(line) == "" || strings.HasPrefix(line, "//"):
		case strings.HasPrefix(line, "="):
			result, numbers = strings.CutPrefix(strings.TrimSpace(line[1:]), "numbers")
			result = strings.TrimSpace(result)
		default:
			if err := answer(result, numbers, line); err != nil {
				return fmt.Errorf("%s: %w", line, err)
			}
		}
	}
	return scanner.Err()
}

func random(count, start string) error {
	n, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	seed, err := strconv.ParseInt(start, 10, 64)
	if err != nil {
		return err
	}
	g := newGenerator(seed)
	for n > 0 {
		result, numbers, expression := g.condition()
		value, err := decode(result, numbers)
		if err != nil {
			return err
		}
		// Of what is refused a part is enough: it all looks alike.
		if outcome(value, expression) == "compile error" && g.Intn(8) > 0 {
			continue
		}
		if err := answer(result, numbers, expression); err != nil {
			return err
		}
		n--
	}
	return nil
}

func answer(result string, numbers bool, expression string) error {
	value, err := decode(result, numbers)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(row{json.RawMessage(result), numbers, expression, outcome(value, expression)}); err != nil {
		return err
	}
	fmt.Print(out.String())
	return nil
}

func decode(result string, numbers bool) (any, error) {
	var value any
	if err := json.Unmarshal([]byte(result), &value); err != nil {
		return nil, err
	}
	if numbers {
		floats := []float64{}
		for _, item := range value.([]any) {
			floats = append(floats, item.(float64))
		}
		value = floats
	}
	return value, nil
}

func outcome(result any, expression string) string {
	env := map[string]any{
		"result":  result,
		"asInt":   asInt,
		"asFloat": asFloat,
		"isNaN":   math.IsNaN,
		"isInf":   func(f float64) bool { return math.IsInf(f, 0) },
		"isNil":   func(any) bool { return result == nil },
		"default": func(_ any, otherwise any) any {
			if result == nil {
				return otherwise
			}
			return result
		},
	}
	program, err := expr.Compile(expression, expr.Env(env))
	if err != nil {
		return "compile error"
	}
	value, err := expr.Run(program, env)
	if err != nil {
		return "run error"
	}
	switch value := value.(type) {
	case bool:
		return strconv.FormatBool(value)
	default:
		return fmt.Sprintf("%T: %v", value, value)
	}
}

func asInt(in any) int64 {
	switch in := in.(type) {
	case float64:
		return int64(in)
	case int:
		return int64(in)
	case int64:
		return in
	case uint8:
		return int64(in)
	case string:
		number, err := strconv.ParseInt(in, 10, 64)
		if err != nil {
			panic(err)
		}
		return number
	}
	panic(fmt.Sprintf("asInt of %T", in))
}

func asFloat(in any) float64 {
	switch in := in.(type) {
	case float64:
		return in
	case int:
		return float64(in)
	case int64:
		return float64(in)
	case uint8:
		return float64(in)
	case string:
		number, err := strconv.ParseFloat(in, 64)
		if err != nil {
			panic(err)
		}
		return number
	}
	panic(fmt.Sprintf("asFloat of %T", in))
}
