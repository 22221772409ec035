/*
 * Hostile counts and words: no count and no index leads out of the buffer. Over ordinary memory, so
 * it also runs on the host, under sanitizers.
 */
#include "../kcov.h"
#include "ktap.h"
#include <stdlib.h>

/* Near the limits, and those that are negative or too large after a shift. */
static uint64_t count_of(size_t index, size_t capacity)
{
	static const unsigned shifts[] = {16, 31, 32, 59, 60, 61, 62, 63};

	if (index < 4)
		return capacity + index - 1;
	index -= 4;
	return ((uint64_t)1 << shifts[index / 3]) + index % 3 - 1;
}

/* Reads everything that a trace has, and more. */
static int is_kept(const volatile void *buffer, size_t bytes, unsigned width, unsigned mode,
		   uint64_t count)
{
	struct kcov_trace t = kcov_trace_of(buffer, bytes, width, mode);
	unsigned word = mode == KCOV_CMP ? 8 : width;
	size_t capacity = (bytes / word - 1) / (mode == KCOV_CMP ? 4 : 1), i;
	enum kcov_state state = count > capacity ? KCOV_CORRUPT :
				count == capacity ? KCOV_TRUNCATED : KCOV_COMPLETE;
	struct kcov_comparison c;

	if (t.count != count || t.capacity != capacity || t.state != state ||
	    t.length != (state == KCOV_CORRUPT ? 0 : count))
		return 0;
	for (i = 0; i < t.length; i++)
		if (mode == KCOV_CMP ? kcov_cmp(&t, i).pc != ~(uint64_t)4 - 4 * i - (word - 8) :
				       kcov_pc(&t, i) != (word == 8 ? ~(uint64_t)i - 1 : 0xfffffffe - i))
			return 0;
	for (i = 0; i < 64; i++) {
		size_t beyond = t.length + ((size_t)1 << i % (8 * sizeof(size_t))) - 1;

		c = kcov_cmp(&t, beyond);
		if (beyond >= t.length && (kcov_pc(&t, beyond) || c.type || c.arg1 || c.arg2 || c.pc))
			return 0;
	}
	return 1;
}

static int all_counts(unsigned width, unsigned mode)
{
	unsigned word = mode == KCOV_CMP ? 8 : width;
	size_t words, i, number;

	for (words = 1; words < 40; words++) {
		size_t bytes = words * 8;
		/* Exactly as large as the buffer, so that a sanitizer sees any access beyond. */
		char *buffer = (char *)malloc(bytes);

		for (number = 0; number < 28; number++) {
			uint64_t count = count_of(number, (bytes / word - 1) / (mode == KCOV_CMP ? 4 : 1));

			for (i = 0; i < bytes / word; i++) {
				if (word == 8)
					((uint64_t *)(void *)buffer)[i] = i ? ~(uint64_t)i : count;
				else
					((uint32_t *)(void *)buffer)[i] = ~(uint32_t)(i ? i : ~(uint32_t)count);
			}
			if (!is_kept(buffer, bytes, width, mode, word == 8 ? count : (uint32_t)count))
				return 0;
		}
		free(buffer);
	}
	return 1;
}

static int types(void)
{
	struct kcov_comparison c = {0, 0, 0, 0};
	unsigned i;

	for (i = 0; i < 64; i++) {
		c.type = (uint64_t)1 << i;
		if (kcov_cmp_bytes(c) != (i == 1 ? 2u : i == 2 ? 4u : 1u) || kcov_cmp_is_const(c) != !i)
			return 0;
	}
	c.type = ~(uint64_t)0;
	return kcov_cmp_bytes(c) == 8 && kcov_cmp_is_const(c);
}

static int nothing(void)
{
	static uint64_t one = 1;
	struct kcov_trace none = kcov_trace_of(NULL, 4096, 8, KCOV_PC);
	struct kcov_trace less = kcov_trace_of(&one, 7, 8, KCOV_CMP);

	return !none.length && !less.length && !kcov_pc(&none, 0) && !kcov_cmp(&less, 0).pc;
}

int main(void)
{
	ktap_begin(4 + (sizeof(void *) == 4));
	ktap(nothing(), "no-buffer-is-an-empty-trace");
	ktap(all_counts(8, KCOV_PC), "pcs-of-any-count");
	ktap(all_counts(8, KCOV_CMP), "comparisons-of-any-count");
	ktap(types(), "types-of-any-bits");
	/* Only 32-bit programs meet a kernel with narrower words. */
	if (sizeof(void *) == 4)
		ktap(all_counts(4, KCOV_PC), "narrow-pcs-of-any-count");
	return ktap_failed != 0;
}
