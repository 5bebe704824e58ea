/** The tests of the store once more with a key: what a disk does to sealed bodies is found and mended as ever (D2, D4). */
process.env.AKE_TEST_SEALED = '1'

for (const name of ['contract', 'damage', 'index', 'mark', 'powercut', 'space']) {
  await import(`../src/store/${name}.test.ts`)
}
