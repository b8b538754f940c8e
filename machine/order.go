package machine

import "math/bits"

// minSet is a set of small integers with a fast smallest element: a tree of
// bitmaps, each word of a level saying which words below it are not empty.
type minSet struct{ levels [][]uint64 }

func newMinSet(n int) minSet {
	var s minSet
	for {
		n = (n + 63) / 64
		s.levels = append(s.levels, make([]uint64, max(n, 1)))
		if n <= 1 {
			return s
		}
	}
}

func (s *minSet) add(i int) {
	for _, l := range s.levels {
		l[i>>6] |= 1 << (i & 63)
		i >>= 6
	}
}

func (s *minSet) remove(i int) {
	for _, l := range s.levels {
		if l[i>>6] &^= 1 << (i & 63); l[i>>6] != 0 {
			return
		}
		i >>= 6
	}
}

// first is the smallest element, -1 when there is none.
func (s *minSet) first() int {
	top := len(s.levels) - 1
	if s.levels[top][0] == 0 {
		return -1
	}
	i := 0
	for k := top; k >= 0; k-- {
		i = i<<6 | bits.TrailingZeros64(s.levels[k][i])
	}
	return i
}

// fenwick holds sums of prefixes.
type fenwick []int

func newFenwick(n int) fenwick { return make(fenwick, n+1) }

func (f fenwick) add(i, by int) {
	for i++; i < len(f); i += i & -i {
		f[i] += by
	}
}

// below is the sum of everything before i.
func (f fenwick) below(i int) int {
	n := 0
	for ; i > 0; i -= i & -i {
		n += f[i]
	}
	return n
}
