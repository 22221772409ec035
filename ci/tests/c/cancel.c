/* Cancels a thread. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static void *wait_for_it(void *unused) { return pause(), unused; }
int main(void) {
    pthread_t thread;
    void *result;
    if (pthread_create(&thread, 0, wait_for_it, 0)) return 1;
    if (pthread_cancel(thread) || pthread_join(thread, &result)) return 2;
    return puts(result == PTHREAD_CANCELED ? "cancelled" : "not") < 0;
}
