package replay

import "testing"

func FuzzReadCases(f *testing.F) {
	f.Add([]byte(`{"id":"c","trajectory_group":"g","source_ids":["s"],"split":"test","initial_state":{},"steps":[{"action":{"type":"a"},"expected_observation":""}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		cases, err := ReadCases("fuzz", text)
		if err != nil {
			return
		}
		for _, c := range cases {
			if c.ID == "" || len(c.Steps) == 0 || c.Steps[0].Action.Type == "" {
				t.Fatalf("case %+v", c)
			}
		}
	})
}
