package rawjson

import "testing"

func TestEditLeavesEveryOtherByte(t *testing.T) {
	const text = ` {"b" : 1e2, "calls":[ {"id":null,"a":"x"} , {"a":"y"}, {} ], "b":"\u0041" }`
	got, err := Edit([]byte(text),
		map[string]string{"/calls/0/id": `"one"`, "/calls/1/a": `"z"`},
		map[string]string{"/calls/1": `"id":"two"`, "/calls/2": `"id":"three"`})
	if err != nil {
		t.Fatal(err)
	}
	const want = ` {"b" : 1e2, "calls":[ {"id":"one","a":"x"} , {"id":"two","a":"z"}, {"id":"three"} ], "b":"\u0041" }`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestEditWithoutAPlace(t *testing.T) {
	for name, edit := range map[string][2]map[string]string{
		"replace": {{"/x": "1"}, nil},
		"insert":  {nil, {"/a": `"x":1`}}, // a scalar takes no member
	} {
		if got, err := Edit([]byte(`{"a":1}`), edit[0], edit[1]); err == nil {
			t.Errorf("%s: got %s, want an error", name, got)
		}
	}
}
