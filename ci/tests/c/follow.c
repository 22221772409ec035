/* Threads, a child, and exec in a thread. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
static void *work(void *exec) {
    pthread_setname_np(pthread_self(), "a worker");
    if (exec)
        execl("/bin/true", "true", (char *)0);
    return 0;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, work, 0);
    pthread_join(thread, 0);
    if (fork() == 0) {
        pthread_create(&thread, 0, work, "");
        pause();
    }
    wait(0);
    return 7;
}
