/* Uses shared memory, a semaphore, a message queue and a pseudoterminal. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <mqueue.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#define MUST(it) if (!(it)) return perror(#it), 1
int main(void) {
    int shared = shm_open("/kcov-vm-test", O_CREAT | O_RDWR, 0600);
    MUST(shared >= 0 && ftruncate(shared, 4096) == 0);
    MUST(mmap(0, 4096, PROT_WRITE, MAP_SHARED, shared, 0) != MAP_FAILED);
    MUST(shm_unlink("/kcov-vm-test") == 0);
    sem_t *semaphore = sem_open("/kcov-vm-test", O_CREAT, 0600, 1);
    MUST(semaphore != SEM_FAILED && sem_wait(semaphore) == 0);
    MUST(sem_unlink("/kcov-vm-test") == 0);
    mqd_t queue = mq_open("/kcov-vm-test", O_CREAT | O_RDWR, 0600, 0);
    MUST(queue >= 0 && mq_send(queue, "x", 1, 0) == 0);
    MUST(mq_unlink("/kcov-vm-test") == 0);
    int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    MUST(terminal >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0);
    int other = open(ptsname(terminal), O_RDWR | O_NOCTTY);
    MUST(other >= 0 && isatty(other));
    return puts("all work") < 0;
}
