package policy

import (
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/env"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"github.com/callsheet/callsheet/value"
)

// Names of the functions behind the macros over the history. A name with an @
// cannot be written in a rule.
const (
	fnBefore   = "@before"
	fnTimes    = "@times"
	fnSum      = "@sum"
	fnLast     = "@last"
	varHistory = "@history"
)

// library is the language of rules: CEL without its unanchored matches, without
// the conversions that round or that hide a type, and without time; with our own
// functions.
func library() []cel.EnvOption {
	subset := env.NewLibrarySubset()
	for _, name := range []string{"matches", "double", "uint", "bytes", "dyn", "type", "timestamp", "duration",
		"getFullYear", "getMonth", "getDayOfYear", "getDayOfMonth", "getDate", "getDayOfWeek",
		"getHours", "getMinutes", "getSeconds", "getMilliseconds"} {
		subset.AddExcludedFunctions(env.NewFunction(name))
	}
	str, texts := cel.StringType, cel.ListType(cel.StringType)
	num := func(id string, t ...*cel.Type) cel.FunctionOpt {
		return cel.Overload(id, t, cel.BoolType, cel.FunctionBinding(func(a ...ref.Val) ref.Val { return between(a[0], a[1], a[2]) }))
	}
	textIn := func(name string, f func(string, []string) bool) cel.EnvOption {
		return cel.Function(name, cel.Overload(name+"_string_list", []*cel.Type{str, texts}, cel.BoolType,
			cel.BinaryBinding(func(a, b ref.Val) ref.Val {
				list, err := stringsOf(b)
				if err != nil {
					return err
				}
				return types.Bool(f(string(a.(types.String)), list))
			})))
	}
	I, D := cel.IntType, cel.DoubleType
	T := cel.TypeParamType("T")
	return []cel.EnvOption{
		cel.StdLib(cel.StdLibSubset(subset)),
		cel.CrossTypeNumericComparisons(true),
		cel.ParserExpressionSizeLimit(maxCondition),
		cel.ParserRecursionLimit(maxNesting),
		cel.Macros(
			cel.GlobalMacro("before", 1, overHistory(fnBefore)),
			cel.GlobalMacro("times", 1, overHistory(fnTimes)),
			cel.GlobalMacro("sum", 2, overHistory(fnSum)),
			cel.GlobalMacro("last", 1, overHistory(fnLast)),
			cel.GlobalMacro("last", 2, overHistory(fnLast)),
		),
		textIn("domain_in", domainIn),
		textIn("host_in", hostIn),
		cel.Function("path_under", cel.Overload("path_under_string_string", []*cel.Type{str, str}, cel.BoolType,
			cel.BinaryBinding(func(a, b ref.Val) ref.Val {
				return types.Bool(pathUnder(string(a.(types.String)), string(b.(types.String))))
			}))),
		cel.Function("one_of", cel.Overload("one_of_list", []*cel.Type{T, cel.ListType(T)}, cel.BoolType,
			cel.BinaryBinding(oneOf))),
		cel.Function("between", num("between_int", I, I, I), num("between_double", D, D, D), num("between_double_int", D, I, I)),
		cel.Function("matches",
			cel.Overload("matches_string_string", []*cel.Type{str, str}, cel.BoolType, cel.BinaryBinding(matches)),
			cel.MemberOverload("string_matches_string", []*cel.Type{str, str}, cel.BoolType, cel.BinaryBinding(matches))),
		cel.Function("json", cel.Overload("json_dyn", []*cel.Type{cel.DynType}, cel.DynType, cel.UnaryBinding(parseText))),
		cel.Function(fnBefore, cel.Overload("before_string", []*cel.Type{historyType, str}, cel.BoolType,
			cel.BinaryBinding(func(h, t ref.Val) ref.Val { return types.Bool(historyOf(h).before(string(t.(types.String)))) }))),
		cel.Function(fnTimes, cel.Overload("times_string", []*cel.Type{historyType, str}, cel.IntType,
			cel.BinaryBinding(func(h, t ref.Val) ref.Val { return types.Int(historyOf(h).times(string(t.(types.String)))) }))),
		cel.Function(fnSum, cel.Overload("sum_string_string", []*cel.Type{historyType, str, str}, cel.DoubleType,
			cel.FunctionBinding(func(a ...ref.Val) ref.Val {
				return historyOf(a[0]).sum(string(a[1].(types.String)), string(a[2].(types.String)))
			}))),
		cel.Function(fnLast,
			cel.Overload("last_string", []*cel.Type{historyType, str}, callRecord.cel,
				cel.BinaryBinding(func(h, t ref.Val) ref.Val { return historyOf(h).last(string(t.(types.String)), nil) })),
			cel.Overload("last_string_map", []*cel.Type{historyType, str, cel.MapType(str, cel.DynType)}, callRecord.cel,
				cel.FunctionBinding(func(a ...ref.Val) ref.Val {
					return historyOf(a[0]).last(string(a[1].(types.String)), a[2].(traits.Mapper))
				}))),
	}
}

var (
	historyRecord = newRecord("history")
	historyType   = historyRecord.cel
)

func historyOf(h ref.Val) *history { return h.Value().(*history) }

// overHistory expands before("x") to @before(@history, "x").
func overHistory(fn string) cel.MacroFactory {
	return func(eh cel.MacroExprFactory, _ ast.Expr, args []ast.Expr) (ast.Expr, *common.Error) {
		return eh.NewCall(fn, append([]ast.Expr{eh.NewIdent(varHistory)}, args...)...), nil
	}
}

func stringsOf(v ref.Val) ([]string, ref.Val) {
	if l, ok := v.Value().([]string); ok {
		return l, nil
	}
	l, ok := v.(traits.Lister)
	if !ok {
		return nil, types.NewErr("not a list of strings")
	}
	out := make([]string, 0, 8)
	for it := l.Iterator(); it.HasNext() == types.True; {
		s, ok := it.Next().(types.String)
		if !ok {
			return nil, types.NewErr("not a list of strings")
		}
		out = append(out, string(s))
	}
	return out, nil
}

// domainIn reports whether the e-mail address is at one of the domains. Letters
// of a domain have no case; an entry that starts with a dot takes subdomains.
// What is no plain address (two @, spaces, another script) is at none.
func domainIn(address string, domains []string) bool {
	local, domain, ok := strings.Cut(address, "@")
	return ok && local != "" && !strings.ContainsAny(address, " \t\r\n<>,;\"\\") && nameIn(domain, domains)
}

// hostIn reports whether the host of an http or https URL, or a bare host, is
// one of the hosts; user names, back-slashes and other scripts make it none.
func hostIn(address string, hosts []string) bool {
	if strings.ContainsAny(address, "\\ \t\r\n@") {
		return false
	}
	if !strings.Contains(address, "//") {
		address = "https://" + address
	}
	u, err := url.Parse(address)
	if err != nil || u.User != nil || u.Scheme != "http" && u.Scheme != "https" {
		return false
	}
	return nameIn(u.Hostname(), hosts)
}

func nameIn(name string, list []string) bool {
	name = strings.ToLower(name)
	if name == "" {
		return false
	}
	for i := range len(name) {
		if c := name[i]; c != '.' && c != '-' && c != ':' && (c < '0' || c > '9') && (c < 'a' || c > 'z') {
			return false
		}
	}
	for _, l := range list {
		l = strings.ToLower(l)
		if name == l || strings.HasPrefix(l, ".") && len(l) > 1 && strings.HasSuffix(name, l) {
			return true
		}
	}
	return false
}

// pathUnder reports whether the path is the root or below it, as text: links are
// the file tool's to judge. Any part that is "..", a back-slash, a percent sign
// or a NUL makes it not.
func pathUnder(p, root string) bool {
	if p == "" || strings.ContainsAny(p, "\\%\x00") || slices.Contains(strings.Split(p, "/"), "..") {
		return false
	}
	p, root = path.Clean(p), path.Clean(root)
	return p == root || root == "/" && p[0] == '/' || root == "." && p[0] != '/' || strings.HasPrefix(p, root+"/")
}

func oneOf(v, list ref.Val) ref.Val { return list.(traits.Container).Contains(v) }

func between(v, lo, hi ref.Val) ref.Val {
	a, b := v.(traits.Comparer).Compare(lo), v.(traits.Comparer).Compare(hi)
	for _, c := range []ref.Val{a, b} {
		if types.IsError(c) {
			return c
		}
	}
	return types.Bool(a.(types.Int) >= 0 && b.(types.Int) <= 0)
}

// anchored compiles a pattern that must match the whole string.
func anchored(pattern string) (*regexp.Regexp, error) {
	if _, err := regexp.Compile(pattern); err != nil {
		return nil, err
	}
	return regexp.Compile(`\A(?:` + pattern + `)\z`)
}

// matches is what CEL wants beside the declaration; in a rule compiledPattern takes
// its place.
func matches(s, pattern ref.Val) ref.Val {
	re, err := anchored(string(pattern.(types.String)))
	if err != nil {
		return types.WrapErr(err)
	}
	return types.Bool(re.MatchString(string(s.(types.String))))
}

// parseText is json(x): strict JSON out of text.
func parseText(v ref.Val) ref.Val {
	s, ok := v.(types.String)
	if !ok {
		return types.NewErr("json() reads text; this is a %s", v.Type().TypeName())
	}
	parsed, err := value.Parse(string(s))
	if err != nil {
		return types.NewErr("json(): %v", err)
	}
	return toCEL(parsed, dynShape, true)
}
