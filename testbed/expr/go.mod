module stateward.dev/testbed/expr

go 1.26.0

require github.com/expr-lang/expr v1.17.8
