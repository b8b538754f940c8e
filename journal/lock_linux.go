package journal

// The commands of fcntl(2) for open file description locks.
const (
	ofdGetLock     = 36
	ofdSetLock     = 37
	ofdSetLockWait = 38
)
