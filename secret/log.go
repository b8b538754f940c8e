package secret

import (
	"context"
	"fmt"
	"log/slog"
)

// LogHandler is h without secrets in what is logged: messages, attributes and
// groups, whatever is in them. A nil redactor gives h itself.
func LogHandler(r *Redactor, h slog.Handler) slog.Handler {
	if r == nil {
		return h
	}
	return &logHandler{r, h}
}

type logHandler struct {
	redact *Redactor
	next   slog.Handler
}

// Enabled implements [slog.Handler].
func (h *logHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

// Handle implements [slog.Handler].
func (h *logHandler) Handle(ctx context.Context, rec slog.Record) error {
	clean := slog.NewRecord(rec.Time, rec.Level, h.redact.Text(rec.Message), rec.PC)
	rec.Attrs(func(a slog.Attr) bool {
		clean.AddAttrs(h.attr(a))
		return true
	})
	return h.next.Handle(ctx, clean)
}

// WithAttrs implements [slog.Handler].
func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	clean := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		clean[i] = h.attr(a)
	}
	return &logHandler{h.redact, h.next.WithAttrs(clean)}
}

// WithGroup implements [slog.Handler].
func (h *logHandler) WithGroup(name string) slog.Handler {
	return &logHandler{h.redact, h.next.WithGroup(h.redact.Text(name))}
}

// attr is a with its texts redacted. What is neither text nor a number or a time
// is logged as the text that it prints as.
func (h *logHandler) attr(a slog.Attr) slog.Attr {
	a.Key, a.Value = h.redact.Text(a.Key), a.Value.Resolve()
	switch a.Value.Kind() {
	case slog.KindString:
		a.Value = slog.StringValue(h.redact.Text(a.Value.String()))
	case slog.KindGroup:
		members := a.Value.Group()
		clean := make([]slog.Attr, len(members))
		for i, m := range members {
			clean[i] = h.attr(m)
		}
		a.Value = slog.GroupValue(clean...)
	case slog.KindAny:
		a.Value = slog.StringValue(h.redact.Text(fmt.Sprintf("%+v", a.Value.Any())))
	}
	return a
}
