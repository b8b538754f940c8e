package openai

import (
	"fmt"
	"io"
	"strconv"

	"github.com/callsheet/callsheet/model"
	"github.com/callsheet/callsheet/model/internal/rawjson"
	"github.com/callsheet/callsheet/model/internal/transport"
	"github.com/callsheet/callsheet/value"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// completion is as much of a response as the adapter reads.
type completion struct {
	Choices []struct {
		Message jsontext.Value `json:"message"`
		Finish  string         `json:"finish_reason"`
	} `json:"choices"`
	Usage jsontext.Value `json:"usage"`
	Error jsontext.Value `json:"error"`
}

// readWhole reads a response that came in one piece. round is the length of the
// conversation, limit the bound of the reply in tokens.
func readWhole(body io.Reader, round, limit int) (*model.Reply, error) {
	var c completion
	if err := json.UnmarshalRead(body, &c, rawjson.Lenient); err != nil {
		return nil, err
	}
	if len(c.Choices) == 0 {
		return nil, noChoice(c.Error)
	}
	return reply(c.Choices[0].Message, c.Choices[0].Finish, c.Usage, round, limit)
}

// noChoice is the error of a response with status 200 and no reply in it:
// routers report a failure of the provider behind them so.
func noChoice(detail jsontext.Value) error {
	e := model.Errorf("the response holds no choice")
	e.Kind = model.Transient
	if code, message := transport.Explanation([]byte(`{"error":` + string(detail) + `}`)); message != "" {
		status, _ := strconv.Atoi(code)
		e.Code, e.Message, e.Kind = code, message, transport.Kind(status, code, message)
	}
	return e
}

// message of an assistant; the fields that are read, not those that are kept.
type assistant struct {
	Content jsontext.Value `json:"content"`
	Refusal string         `json:"refusal"`
	Calls   []struct {
		ID       jsontext.Value `json:"id"`
		Function struct {
			Name      string         `json:"name"`
			Arguments jsontext.Value `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

func reply(raw []byte, finish string, usage jsontext.Value, round, limit int) (*model.Reply, error) {
	var a assistant
	if err := json.Unmarshal(raw, &a, rawjson.Lenient); err != nil {
		return nil, fmt.Errorf("the message of the reply: %w", err)
	}
	r := &model.Reply{Text: contentText(a.Content), Raw: raw, Dialect: Dialect, Reason: finish, Usage: tokens(usage)}
	if r.Text == "" {
		r.Text = a.Refusal
	}
	for _, c := range a.Calls {
		call := model.Call{Name: c.Function.Name, ID: rawjson.Text(c.ID)}
		if c.Function.Arguments.Kind() == '"' {
			if err := json.Unmarshal(c.Function.Arguments, &call.Arguments); err != nil {
				return nil, fmt.Errorf("the arguments of a call: %w", err)
			}
		} else if c.Function.Arguments.Kind() != 'n' {
			call.Arguments = string(c.Function.Arguments) // an object where the API says text
		}
		r.Calls = append(r.Calls, call)
	}
	r.Finish = finishOf(finish, a.Refusal).Cut(r.Usage, limit)
	r.Edits = model.FreshIDs(r.Calls, round)
	return r, mend(r, &a)
}

// mend makes the edits of the raw message without which no server would take
// it back.
func mend(r *model.Reply, a *assistant) error {
	replace, insert := map[string]string{}, map[string]string{}
	for i, c := range r.Calls {
		at := fmt.Sprintf("/tool_calls/%d", i)
		sent := a.Calls[i]
		id := value.MustText(c.ID).String()
		switch {
		case sent.ID == nil:
			insert[at] = `"id":` + id
		case rawjson.Text(sent.ID) != c.ID:
			replace[at+"/id"] = id
		}
		if back := sendable(c.Arguments); back != c.Arguments && sent.Function.Arguments.Kind() != '{' {
			edit := value.MustText(back).String()
			if sent.Function.Arguments == nil {
				insert[at+"/function"] = `"arguments":` + edit
			} else {
				replace[at+"/function/arguments"] = edit
			}
			what := "was empty and goes back as {}"
			if back != "{}" {
				what = "was no JSON and goes back as {\"_raw\": text}"
			}
			r.Edits = append(r.Edits, fmt.Sprintf("the text of the arguments of call %d %s", i+1, what))
		}
	}
	if len(r.Calls) == 0 && (a.Content == nil || a.Content.Kind() == 'n') && a.Refusal == "" {
		if a.Content == nil {
			insert[""] = `"content":""`
		} else {
			replace["/content"] = `""`
		}
		r.Edits = append(r.Edits, "a message without content or calls got an empty content")
	}
	if len(replace)+len(insert) == 0 {
		return nil
	}
	raw, err := rawjson.Edit(r.Raw, replace, insert)
	if err != nil {
		return fmt.Errorf("the message of the reply: %w", err)
	}
	r.Raw = raw
	return nil
}

// contentText is the text of a content that is a string or a list of parts.
func contentText(content jsontext.Value) (text string) {
	switch content.Kind() {
	case '"':
		_ = json.Unmarshal(content, &text)
	case '[':
		var parts []struct {
			Type string `json:"type"`
			Text string `json:"text"`
		}
		if json.Unmarshal(content, &parts, rawjson.Lenient) == nil {
			for _, p := range parts {
				if p.Type == "text" {
					text += p.Text
				}
			}
		}
	}
	return text
}

func finishOf(reason, refusal string) model.Finish {
	if refusal != "" {
		return model.FinishRefusal
	}
	switch reason {
	case "stop":
		return model.FinishStop
	case "tool_calls", "function_call":
		return model.FinishCalls
	case "length":
		return model.FinishLength
	case "content_filter":
		return model.FinishFilter
	}
	return model.FinishOther
}

// tokens reads the usage. A number that is missing, null or no integer was not
// reported.
func tokens(usage jsontext.Value) model.Usage {
	var u struct {
		Prompt     jsontext.Value `json:"prompt_tokens"`
		Completion jsontext.Value `json:"completion_tokens"`
	}
	if usage.Kind() != '{' || json.Unmarshal(usage, &u, rawjson.Lenient) != nil {
		return model.Usage{}
	}
	return model.Usage{Prompt: integer(u.Prompt), Completion: integer(u.Completion)}
}

func integer(v jsontext.Value) *int {
	n, err := strconv.Atoi(string(v))
	if err != nil {
		return nil
	}
	return &n
}
