/* Checks a trace like a fuzzer in C, for comparison by the benchmark `instructions`. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PCS = 65535, STEP = 80 };

static const unsigned long TEXT = 0xffffffff81000000UL;

/* Keeps the buffer and the results observable, so that each pass happens. */
#define OBSERVE(x) __asm__ volatile("" : : "r"(x) : "memory")

/* Returns whether a PC is missing from a map with one bit per byte of text. */
static int novelty(const unsigned long *cover, const unsigned long *seen, unsigned long bytes)
{
	unsigned long n = __atomic_load_n(&cover[0], __ATOMIC_RELAXED);
	for (unsigned long i = 0; i < n; i++) {
		unsigned long offset = cover[i + 1] - TEXT;
		if (offset >= bytes || !(seen[offset / 64] >> offset % 64 & 1))
			return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (argc != 3 || strcmp(argv[1], "novelty")) /* novelty PASSES */
		return 2;
	unsigned long bytes = (unsigned long)PCS * STEP;
	unsigned long passes = strtoul(argv[2], NULL, 10);
	unsigned long *cover = calloc(1 + PCS, sizeof(*cover));
	unsigned long *seen = calloc(bytes / 64 + 1, sizeof(*seen));

	cover[0] = PCS;
	for (unsigned long i = 0; i < PCS; i++) {
		cover[i + 1] = TEXT + i * STEP;
		seen[i * STEP / 64] |= 1UL << i * STEP % 64;
	}
	for (unsigned long pass = 0; pass < passes; pass++) {
		OBSERVE(cover);
		OBSERVE(novelty(cover, seen, bytes));
	}
	return 0;
}
