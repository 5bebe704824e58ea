// Restores a backup of etcd as its manual advises for Kubernetes: revisions go on far above those that clients may have
// seen, and everything before counts as compacted. etcdutl's own code, without the rest of its commands.
package main

import (
	"flag"
	"fmt"
	"os"

	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.uber.org/zap"
)

func main() {
	from := flag.String("from", "", "the database file of the backup")
	to := flag.String("to", "", "the data folder to make")
	peer := flag.String("peer", "", "the peer URL of the one member")
	bump := flag.Uint64("bump", 0, "how far revisions jump")
	flag.Parse()
	err := snapshot.NewV3(zap.NewNop()).Restore(snapshot.RestoreConfig{
		SnapshotPath: *from, OutputDataDir: *to, Name: "default", PeerURLs: []string{*peer},
		InitialCluster: "default=" + *peer, InitialClusterToken: "etcd-cluster",
		// A file taken from a data folder carries no hash.
		SkipHashCheck: true, RevisionBump: *bump, MarkCompacted: *bump > 0,
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
