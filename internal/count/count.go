// Package count writes how many there are of something, for people.
//
//	fmt.Println(count.Of(1, "run"), count.Of(2, "model call")) // 1 run 2 model calls
package count

import "strconv"

// Of is a number and what is counted, whose plural takes an s: "1 run", "0 runs",
// "2 runs".
func Of[N ~int | ~int64](n N, one string) string {
	s := strconv.FormatInt(int64(n), 10) + " " + one
	if n != 1 {
		s += "s"
	}
	return s
}
