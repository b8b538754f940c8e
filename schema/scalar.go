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
	wrong := func(keyword, format string, bound *decimal) {
		if r = fails; !unread(out) {
			e.fault(out, n, keyword, format, value.Excerpt(literal), value.Excerpt(bound.literal))
		}
	}
	if n.minimum != nil && d.cmp(*n.minimum) < 0 {
		wrong("/minimum", "is %s, the least is %s", n.minimum)
	}
	if n.maximum != nil && d.cmp(*n.maximum) > 0 {
		wrong("/maximum", "is %s, the most is %s", n.maximum)
	}
	if n.above != nil && d.cmp(*n.above) <= 0 {
		wrong("/exclusiveMinimum", "is %s, it must be above %s", n.above)
	}
	if n.below != nil && d.cmp(*n.below) >= 0 {
		wrong("/exclusiveMaximum", "is %s, it must be below %s", n.below)
	}
	if n.multipleOf != nil && !d.multipleOf(*n.multipleOf) {
		wrong("/multipleOf", "is %s, it must be a multiple of %s", n.multipleOf)
	}
	return r
}

func (e *evaluation) text(n *node, v value.Value, out *[]Fault) verdict {
	if n.minLength == nil && n.maxLength == nil && n.pattern == nil && n.inFormat == nil {
		return fits
	}
	e.spend(v.Size() / bytesPerWork)
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
	if n.pattern != nil && !e.meter.matches(n.pattern, s) {
		if unread(out) {
			return fails
		}
		r = e.fault(out, n, "/pattern", "is %s, which does not match the pattern %s", value.Quoted(s), value.Quoted(n.pattern.String()))
	}
	if n.inFormat != nil && e.meter.spend(len(s)/normalPerWork) && !n.inFormat(s) {
		if unread(out) {
			return fails
		}
		r = e.fault(out, n, "/format", "is %s, which is no %s", value.Quoted(s), value.Excerpt(n.format))
	}
	return r
}
