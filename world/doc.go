// Package world holds the vocabulary of worlds: what a recorded environment is
// made of once it has been taken apart. Its rooms do the work on it:
//
//	episode    recorded interactions in, events and action→result slices out
//	book       the worldbook: an immutable, hashed directory of knowledge
//	state      the state of an episode being played, persistent and cheap to change
//	engine     the pure step: type, select, check, apply, verify, render
//	session    one episode being played, in one SQLite file
//	workspace  the tools and the submission of the world-model agent
//	replay     cases against a worldbook; promotion and patches
//	runs       Callsheet's own runs as recordings
//	build      a worldbook from episodes, without a model
//	rehearsal  which answer a recorded call may be given, and from where
//
// A rule read from text, and one of its facts:
//
//	var r world.Rule
//	err := r.UnmarshalJSON([]byte(`{"id":"deposit","action_type":"deposit","description":"",
//		"effects":[{"op":"increment","path":"world.balance","value":{"$action_arg":"amount"}}]}`))
//	fmt.Println(r.Effects[0].Path, r.Confidence) // world.balance 1
//
// Every document of the format refuses members it does not know, writes its
// nulls and its defaults, and keeps numbers as they were written
// (spec/world-reference.md §4).
package world
