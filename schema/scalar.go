package schema

import (
	"unicode/utf8"

	"github.com/callsheet/callsheet/value"
)

func (e *evaluation) number(n *node, v value.Value, out *[]Fault) verdict {
	if n.minimum == nil && n.maximum == nil && n.above == nil && n.below == nil && n.multipleOf == nil {
		return fits
	}
	literal, _ := v.Number()
	d := parse(literal)
	if !d.bounded() {
		return e.fault(out, n, "", "is the number %s, which goes beyond %d digits and is not compared", value.Excerpt(literal), maxMagnitude)
	}
	r := fits
	if n.minimum != nil && d.cmp(*n.minimum) < 0 {
		r = e.fault(out, n, "/minimum", "is %s, the least is %s", value.Excerpt(literal), value.Excerpt(n.minimum.literal))
	}
	if n.maximum != nil && d.cmp(*n.maximum) > 0 {
		r = e.fault(out, n, "/maximum", "is %s, the most is %s", value.Excerpt(literal), value.Excerpt(n.maximum.literal))
	}
	if n.above != nil && d.cmp(*n.above) <= 0 {
		r = e.fault(out, n, "/exclusiveMinimum", "is %s, it must be above %s", value.Excerpt(literal), value.Excerpt(n.above.literal))
	}
	if n.below != nil && d.cmp(*n.below) >= 0 {
		r = e.fault(out, n, "/exclusiveMaximum", "is %s, it must be below %s", value.Excerpt(literal), value.Excerpt(n.below.literal))
	}
	if n.multipleOf != nil && !d.multipleOf(*n.multipleOf) {
		r = e.fault(out, n, "/multipleOf", "is %s, it must be a multiple of %s", value.Excerpt(literal), value.Excerpt(n.multipleOf.literal))
	}
	return r
}

func (e *evaluation) text(n *node, v value.Value, out *[]Fault) verdict {
	if n.minLength == nil && n.maxLength == nil && n.pattern == nil && n.inFormat == nil {
		return fits
	}
	s, _ := v.Text()
	r := fits
	if n.minLength != nil || n.maxLength != nil {
		length := utf8.RuneCountInString(s)
		if n.minLength != nil && length < *n.minLength {
			r = e.fault(out, n, "/minLength", "has %d characters, the least is %d", length, *n.minLength)
		}
		if n.maxLength != nil && length > *n.maxLength {
			r = e.fault(out, n, "/maxLength", "has %d characters, the most is %d", length, *n.maxLength)
		}
	}
	if n.pattern != nil && !e.matches(n.pattern, s) {
		r = e.fault(out, n, "/pattern", "is %s, which does not match the pattern %s", value.Quoted(s), value.Quoted(n.pattern.String()))
	}
	if n.inFormat != nil && !n.inFormat(s) {
		r = e.fault(out, n, "/format", "is %s, which is no %s", value.Quoted(s), value.Excerpt(n.format))
	}
	return r
}

// matches pays for the match before it is made.
func (e *evaluation) matches(p *pattern, s string) bool {
	e.spend(len(s) * p.states / statesPerWork)
	return e.over == "" && p.MatchString(s)
}
