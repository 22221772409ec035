/* 60 threads at once. */
#include <pthread.h>
#define THREADS 60
static pthread_barrier_t all;
static void *work(void *unused) {
    pthread_barrier_wait(&all);
    return unused;
}
int main(void) {
    pthread_t threads[THREADS];
    pthread_barrier_init(&all, 0, THREADS);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], 0, work, 0))
            return 1;
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], 0);
    return 7;
}
