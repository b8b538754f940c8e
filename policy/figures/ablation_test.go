package figures

import "testing"

// TestFiguresAblation says what each part of the shipped default is worth.
func TestFiguresAblation(t *testing.T) {
	suites := loadSuites(t)
	r := &report{title: "What each part is worth (AgentDojo)"}
	free := make([]int, len(variants))
	for i, how := range variants {
		var plan, m4, m5 totals
		for _, s := range suites {
			s.benign(t, how, &plan)
			s.compromisedPlanner(t, how, &m4)
			s.obedientAgent(t, how, &m5)
		}
		r.add("M1", how.name, plan.free, plan.benign, "benign effects that need no person")
		r.add("M4", how.name, m4.passed, m4.must, "injected calls of a compromised planner that were made")
		r.add("M5", how.name, m5.passed, m5.must, "injected calls of an obedient agent that were made")
		free[i] = plan.free
	}
	if free[perLeafVariant] <= free[3] {
		t.Errorf("labels per leaf free %d effects, labels per output %d: leaves are worth nothing", free[perLeafVariant], free[3])
	}
	r.publish(t, "ablation")
}
