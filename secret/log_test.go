package secret_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/callsheet/callsheet/secret"
)

func TestLogsHoldNoSecret(t *testing.T) {
	r, err := secret.NewRedactor(map[string]string{"pw": "hunter2hunter2"})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	log := slog.New(secret.LogHandler(r, slog.NewJSONHandler(&out, nil)))
	log.With("token", "hunter2hunter2").WithGroup("g").Info("saw hunter2hunter2",
		"line", "68756e7465723268756e74657232", "err", errors.New("401 hunter2hunter2"), "n", 7,
		slog.Group("inner", "hunter2hunter2", "x", "deep", []string{"hunter2hunter2"}))
	got := out.String()
	if strings.Contains(got, "hunter2") || strings.Contains(got, "68756e74") {
		t.Errorf("a secret is logged: %s", got)
	}
	if strings.Count(got, "[secret:pw]") != 6 || !strings.Contains(got, `"n":7`) {
		t.Errorf("got %s, want six marks and the rest as it was", got)
	}
	if h := slog.NewJSONHandler(&out, nil); secret.LogHandler(nil, h) != slog.Handler(h) {
		t.Error("without secrets the handler is another")
	}
}
