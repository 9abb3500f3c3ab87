package main

import "testing"

func BenchmarkTree(b *testing.B) {
	for b.Loop() {
		treeFor("task")
	}
}

func BenchmarkWholeTree(b *testing.B) {
	for b.Loop() {
		tree()
	}
}
