volatile int sink;
void (*volatile other)(int);
__attribute__((no_sanitize_coverage)) void __sanitizer_cov_trace_pc(void) { }
__attribute__((noinline)) void table(int i) {
    switch (i) {
    case 0: sink = 10; break;
    case 1: other(11); break;
    case 2: sink += 12; other(sink); break;
    case 3: other(13); sink = i; break;
    case 4: sink -= 14; break;
    case 5: other(15); other(i); break;
    }
}
/* More live values than registers, so that the hook's address waits on the stack. */
__attribute__((noinline)) int many(int a, int b, int c, int d, int e, int f, int *p) {
    int g = p[0], h = p[1], i = p[2], j = p[3], k = p[4];
    for (int n = 0; n < a; n++) {
        other(n);
        if (n & b) { other(c); g += d; }
        if (n & g) { other(e); h += f; }
        if (n & h) { other(i); j += k; }
    }
    return a + b + c + d + e + f + g + h + i + j + k;
}
static void nothing(int i) { sink = i; }
__attribute__((noinline, no_sanitize_coverage)) void last(int i) { other(i); }
int main(int count, char **words) {
    other = nothing;
    table(count);
    last(count);
    return words ? many(1, 2, 3, 4, 5, 6, (int[5]) {7}) : 0;
}
