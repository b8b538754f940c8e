package journal

// The commands of fcntl(2) for open file description locks.
const (
	ofdSetLock     = 90
	ofdSetLockWait = 91
	ofdGetLock     = 92
)
