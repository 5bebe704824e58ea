/** Loaded before the program in a process that the demo starts: it ends with the demo, however that ends. */
process.once('disconnect', () => process.kill(process.pid, 'SIGKILL'))
