package main

import (
	"fmt"
	"math/rand"
	"strings"
)

// generator makes conditions at random: mostly good ones, some with a mistake in them.
type generator struct {
	*rand.Rand
	// inPredicate tells whether # has a meaning.
	inPredicate int
}

func newGenerator(seed int64) *generator {
	return &generator{Rand: rand.New(rand.NewSource(seed))}
}

var answers = []struct {
	result  string
	numbers bool
}{
	{`null`, false},
	{`true`, false},
	{`5`, false},
	{`0.25`, false},
	{`"OK"`, false},
	{`"12"`, false},
	{`[]`, false},
	{`[0.97,0.5]`, true},
	{`[]`, true},
	{`[3,1,2]`, false},
	{`["a","b"]`, false},
	{`[1,"a",null,true]`, false},
	{`{}`, false},
	{`{"a":1,"b":"x","c":null,"list":[1,2,3],"map":{"a":true}}`, false},
	{`[{"name":"a","err":0.1,"ok":true},{"name":"b","err":0.2,"ok":false}]`, false},
}

func (g *generator) pick(options ...string) string {
	return options[g.Intn(len(options))]
}

func (g *generator) condition() (string, bool, string) {
	answer := answers[g.Intn(len(answers))]
	expression := g.boolean(3)
	switch g.Intn(12) {
	case 0:
		expression = g.any(3)
	case 1:
		expression = g.broken(expression)
	}
	return answer.result, answer.numbers, expression
}

// broken takes a character out or puts one in.
func (g *generator) broken(expression string) string {
	at := g.Intn(len(expression) + 1)
	if g.Intn(2) == 0 && at < len(expression) && at > 0 {
		return expression[:at-1] + expression[at:]
	}
	return expression[:at] + g.pick("(", ")", "[", "]", ",", ".", "?", "+", "not ", "=", "|", "#", "5", "'", "in ", ":") + expression[at:]
}

func (g *generator) boolean(depth int) string {
	if depth <= 0 {
		return g.pick("true", "false", "result == nil", "isNil(result)", "result", "1 < 2")
	}
	d := depth - 1
	switch g.Intn(17) {
	case 15:
		return g.text(0) + " matches `" + g.pattern() + "`"
	case 0:
		return g.boolean(d) + g.pick(" && ", " || ", " and ", " or ") + g.boolean(d)
	case 1:
		return g.pick("not ", "!") + "(" + g.boolean(d) + ")"
	case 2, 3:
		return g.number(d) + g.pick(" < ", " <= ", " > ", " >= ", " == ", " != ") + g.number(d)
	case 4:
		return g.any(d) + g.pick(" == ", " != ", " < ", " >= ") + g.any(d)
	case 5:
		return g.text(d) + g.pick(" == ", " contains ", " startsWith ", " endsWith ", " matches ", " != ") + g.text(d)
	case 6:
		return g.any(d) + g.pick(" in ", " not in ") + g.list(d)
	case 7, 8:
		return g.pick("all", "any", "none", "one") + "(" + g.list(d) + ", " + g.predicate(d) + ")"
	case 9:
		return "(" + g.boolean(d) + " ? " + g.boolean(d) + " : " + g.boolean(d) + ")"
	case 10:
		return g.text(d) + g.pick(" in ", " not in ") + g.table(d)
	case 11:
		return "let x = " + g.any(d) + "; " + g.pick("x == ", "x != ", "x in ") + g.any(d)
	case 12:
		return "count(" + g.list(d) + ", " + g.predicate(d) + ")" + g.pick(" > ", " >= ", " == ", " < ", " <= ") + g.pick("0", "1", "2")
	case 13:
		return g.number(d) + g.pick(" < ", " <= ") + g.number(d) + g.pick(" < ", " <= ") + g.number(d)
	case 14:
		return "hasPrefix(" + g.text(d) + ", " + g.text(d) + ")"
	default:
		return "(" + g.any(d) + " ?? " + g.any(d) + ") == " + g.any(d)
	}
}

// fragments of regular expressions, good ones and bad ones.
var fragments = strings.Fields(`a b O K . \d \w \s \D \W \S \b \B ^ $ * + ? *? {2} {1,2} {,2} {1001} ( ) (?: (?P<n> (?x) | [ab] [^ab]
	[a-z] [a-] []a] [\d] [\D] [[:alpha:]] [[:foo:]] [a&&b] [z-a] \. \< \x41 \p{L} \pL \p{^L} \Q.\E \A \z \1 \101 \y 1 { } ] (a|b)*`)

func (g *generator) pattern() string {
	pattern := ""
	for range g.Intn(4) + 1 {
		pattern += g.pick(fragments...)
	}
	return pattern
}

func (g *generator) predicate(depth int) string {
	g.inPredicate++
	defer func() { g.inPredicate-- }()
	body := g.boolean(depth)
	switch g.Intn(5) {
	case 0:
		body = "# > " + g.number(0)
	case 1:
		body = g.pick(".ok", ".err < 0.15", ".name == 'a'", "#.err > 0", ".nope == nil", "#.name in ['a']")
	}
	if g.Intn(3) == 0 {
		return "{" + body + "}"
	}
	return body
}

func (g *generator) number(depth int) string {
	if depth <= 0 {
		if g.inPredicate > 0 && g.Intn(3) == 0 {
			return "#"
		}
		return g.pick("0", "1", "2", "5", "-1", "0.5", "0.95", "1e3", "0x10", "1_000", "result", "result[0]", "result[-1]", "result.a", "result.nope", "len(result)")
	}
	d := depth - 1
	switch g.Intn(14) {
	case 0, 1:
		return g.number(d) + g.pick(" + ", " - ", " * ", " / ", " % ") + g.number(d)
	case 2:
		return "-" + g.number(0)
	case 3:
		return g.pick("abs", "ceil", "floor", "round", "int", "float", "asInt", "asFloat") + "(" + g.any(d) + ")"
	case 4:
		return g.pick("sum", "mean", "median", "max", "min", "len", "first", "last") + "(" + g.list(d) + ")"
	case 5:
		return "len(" + g.text(d) + ")"
	case 6:
		return "count(" + g.list(d) + ", " + g.predicate(d) + ")"
	case 7:
		return g.pick("findIndex", "find") + "(" + g.list(d) + ", " + g.predicate(d) + ")"
	case 8:
		return "reduce(" + g.list(d) + ", #acc + #, " + g.number(0) + ")"
	case 9:
		return "(" + g.list(d) + ")[" + g.pick("0", "1", "-1", "5") + "]"
	case 10:
		return "indexOf(" + g.text(d) + ", " + g.text(0) + ")"
	case 11:
		return g.pick("max", "min") + "(" + g.number(d) + ", " + g.number(d) + ")"
	case 12:
		return "(" + g.number(d) + " ?? " + g.number(d) + ")"
	default:
		return "default(result, " + g.number(0) + ")"
	}
}

func (g *generator) text(depth int) string {
	if depth <= 0 {
		if g.inPredicate > 0 && g.Intn(4) == 0 {
			return "#.name"
		}
		return g.pick("'a'", "'OK'", "''", "\"b\"", "`x`", "'12'", "result", "result.b", "result[0]", "string(result)", "type(result)")
	}
	d := depth - 1
	switch g.Intn(9) {
	case 0:
		return g.pick("upper", "lower", "trim", "string", "type", "toJSON") + "(" + g.any(d) + ")"
	case 1:
		return g.text(d) + " + " + g.text(d)
	case 2:
		return "join(" + g.list(d) + ", ',')"
	case 3:
		return "replace(" + g.text(d) + ", " + g.text(0) + ", " + g.text(0) + ")"
	case 4:
		return "(" + g.text(d) + ")[" + g.pick("0:1", "1:", ":1", "-1:", ":") + "]"
	case 5:
		return g.pick("trimPrefix", "trimSuffix") + "(" + g.text(d) + ", " + g.text(0) + ")"
	case 6:
		return "repeat(" + g.text(d) + ", 2)"
	case 7:
		return "(" + g.boolean(d) + " ? " + g.text(d) + " : " + g.text(d) + ")"
	default:
		return "(" + g.text(d) + " ?? " + g.text(d) + ")"
	}
}

func (g *generator) list(depth int) string {
	if depth <= 0 {
		return g.pick("result", "[]", "[1, 2, 3]", "['a', 'b']", "1..3", "result.list", "[result]", "[1, 'a', nil]", "[0.5, 1.5]", "[true]")
	}
	d := depth - 1
	switch g.Intn(13) {
	case 0:
		return "filter(" + g.list(d) + ", " + g.predicate(d) + ")"
	case 1:
		g.inPredicate++
		defer func() { g.inPredicate-- }()
		return "map(" + g.list(d) + ", " + g.any(d) + ")"
	case 2:
		return g.pick("sort", "reverse", "uniq", "flatten", "concat") + "(" + g.list(d) + ")"
	case 3:
		return "split(" + g.text(d) + ", " + g.text(0) + ")"
	case 4:
		return "(" + g.list(d) + ")[" + g.pick("0:1", "1:", ":1", "-1:", ":", "1:1", "5:") + "]"
	case 5:
		items := []string{}
		for range g.Intn(4) {
			items = append(items, g.any(d))
		}
		return "[" + strings.Join(items, ", ") + "]"
	case 6:
		return "take(" + g.list(d) + ", " + g.pick("0", "1", "2", "9") + ")"
	case 7:
		return "sort(keys(" + g.table(d) + "))"
	case 8:
		return "sortBy(" + g.list(d) + ", " + g.pick("#", ".err", "-#", "#.name") + g.pick("", ", 'desc'", ", 'asc'") + ")"
	case 9:
		return fmt.Sprintf("%d..%s", g.Intn(3), g.pick("3", "5", "0", "len(result)"))
	case 10:
		return "concat(" + g.list(d) + ", " + g.list(d) + ")"
	case 11:
		return "(" + g.list(d) + " | " + g.pick("filter(# != nil)", "map(string(#))", "map(#)", "sort()", "reverse()", "take(1)") + ")"
	default:
		return "(" + g.list(d) + " ?? " + g.list(d) + ")"
	}
}

func (g *generator) table(depth int) string {
	if depth <= 0 {
		return g.pick("result", "{}", "{a: 1}", "{'a': 1, \"b\": 2.5}", "result.map", "{a: {b: nil}}", "result[0]")
	}
	d := depth - 1
	switch g.Intn(5) {
	case 0:
		return "groupBy(" + g.list(d) + ", " + g.pick("#", "string(#)", ".name", "type(#)") + ")"
	case 1:
		return "fromPairs(toPairs(" + g.table(d) + "))"
	case 2:
		return "{a: " + g.any(d) + ", b: " + g.any(d) + "}"
	case 3:
		return "(" + g.boolean(d) + " ? " + g.table(d) + " : " + g.table(d) + ")"
	default:
		return g.table(0)
	}
}

func (g *generator) any(depth int) string {
	if g.inPredicate > 0 && g.Intn(4) == 0 {
		return g.pick("#", "#", "#.name", ".err", "#?.a")
	}
	if depth <= 0 {
		return g.pick("nil", "result", "result.a", "result.c", "result?.map?.a", "result.list", "result[0]", "1", "'a'", "true", "0.5", "[1]", "{a: 1}")
	}
	d := depth - 1
	switch g.Intn(9) {
	case 0:
		return g.text(d)
	case 1:
		return g.number(d)
	case 2:
		return g.list(d)
	case 3:
		return g.table(d)
	case 4:
		return "get(" + g.any(d) + ", " + g.pick("0", "'a'", "'map'", "1") + ")"
	case 5:
		return "(" + g.any(d) + ")" + g.pick(".a", "?.a", "[0]", "['a']", "?.a.b", "?.[0]", ".name")
	case 6:
		return "(if " + g.boolean(d) + " { " + g.any(d) + " } else { " + g.any(d) + " })"
	case 7:
		return "(" + g.boolean(d) + ")"
	default:
		return g.any(0)
	}
}
