/* A program with a kernel's hook and text. */
volatile int sink;
const char linux_banner[] = "Linux version 7.3-test (gcc) #1\n";
void __sanitizer_cov_trace_pc(void) { }
static inline __attribute__((always_inline)) void inner(int i) {
    if (i)
        sink = 1;
}
__attribute__((noinline)) void outer(int i) {
    inner(i);
}
__attribute__((noinline)) void never(void) {
    sink = 2;
}
int main(int count, char **words) { outer(count); if (count > 9) never(); return 0; }
