//! What a complaint is about: the functions of its own stack, a title and a group.

use super::{Complaint, TroubleKind, message};

/// Functions that report, check or wait for their callers, and the hooks of sanitizers and kcov. `*`
/// stands for any end. Leading underscores do not count.
const HELPERS: &str = "\
    asm_exc_* asm_sysvec_* bug_handler check_panic_on_warn die die_addr do_error_trap \
    do_invalid_op do_trap* dump_backtrace* dump_stack* dump_trace* el1_* el1h_* end_report exc_* \
    fortify_* handle_bug might_fault might_resched might_sleep oops_* page_fault_oops panic \
    print_address_description* print_report printk* report_bug show_regs* show_stack* show_trace* \
    stack_trace_save* vpanic vprintk* warn warn_printk* warn_slowpath* segv* sig_handler* \
    hard_handler relay_signal asan_* check_region_inline kasan_* kcsan_* kfence_* msan_* \
    sanitizer_* tsan_* ubsan_* write_comp_data kmsan_* check_chain_key check_noncircular \
    check_prev_add check_prevs_add debug_check_* lock_acquire* lock_release* lockdep_* mark_lock* \
    print_circular_bug* print_deadlock_bug print_usage_bug* validate_chain raw_*lock* raw_spin_* \
    do_raw_* spin_bug spin_dump down_* mutex_lock* mutex_unlock* down up rt_mutex_* rwsem_down_* \
    native_queued_spin_* queued_spin_* print_*_bug bit_wait* context_switch cond_resched* \
    io_schedule* preempt_schedule* schedule* switch_to* wait_for_common* wait_for_completion* \
    wait_on_bit* msleep* usleep_* out_of_line_wait_* do_nanosleep apic_timer_interrupt csd_lock_* \
    hrtimer_* irq_exit* nmi_* sysvec_* tick_* timer_interrupt timer_handler update_process_times \
    watchdog_* rcu_check_* rcu_sched_clock_irq check_hung_* sched_show_task print_cpu_stall* \
    copy_from_user* copy_to_user* copy_user_* copy_from_iter* copy_to_iter* do_slab_free \
    free_large_kmalloc get_user_* kfree* kmalloc* kmem_cache_* krealloc* kvfree* kvmalloc* \
    kzalloc* memchr* memcmp memcpy* memmove* memset* object_err put_user_* rep_movs* slab_* slub_* \
    stpcpy strcasecmp strcat strchr strcmp strcpy strlcpy strlen strncasecmp strncmp strncpy \
    strncpy_from_user strnlen* strrchr strscpy strstr vfree* kref_* list_add* list_del* refcount_* \
    alloc_pages* alloc_frozen_pages* alloc_order_allowed inode_lock* lock_sock* pipe_lock* \
    rcu_preempt_sleep_check rcu_sleep_check arch_* check_copy_size check_object_size do_kmalloc* \
    get_current instrument_* might_alloc prepare_alloc_pages rcu_read_* spin_lock* spin_unlock* \
    copy_overflow usercopy_abort folio_lock* folio_wait_* percpu_* synchronize_* rtnl_lock* \
    rtnl_net_lock* filemap_get_folio* filemap_lock_folio* pagecache_get_page* lock_page*";

/// Functions from which a stack is about how the kernel was entered.
const ENTRIES: &str = "\
    arm64_sys_* do_el0_svc do_one_initcall do_sys_* do_syscall_* el0* entry_* fork_handler \
    handle_syscall handle_softirqs ia32_sys_* invoke_syscall kthread ksys_* new_thread_handler \
    process_one_work process_scheduled_works ret_from_fork* ret_fast_syscall se_sys_* syscall_* \
    system_call* userspace vfs_* worker_thread x64_sys_*";

/// The number of functions that tell causes apart.
const MOST: usize = 2;

impl Complaint {
    /// The functions that are to blame, the innermost first: that of the fault, or the one that
    /// takes a lock, and its callers.
    pub fn functions(&self) -> Vec<String> {
        let lines = || self.text.iter().map(|line| message(line));
        let named = match self.kind {
            // The lock that a task is about to take, not one that it holds.
            TroubleKind::Lockdep => {
                let takes =
                    |line: &str| line.contains(" is trying to ") || line.ends_with(" takes:");
                let lock = lines().skip_while(|line| !takes(line)).nth(1);
                lock.and_then(|lock| match lock.split_once("at: ") {
                    Some((_, place)) => self.names(place),
                    None => self.names(frame(lock)?),
                })
            }
            TroubleKind::Hung | TroubleKind::Memory => None,
            // `BUG: failure at a.c:7/f()!`
            _ => self.line.split_whitespace().find_map(|word| self.names(word)).or_else(|| {
                let (_, name) = self.line.strip_suffix("()!")?.rsplit_once('/')?;
                Some(vec![name.to_owned()])
            }),
        };
        let pc = |line: &str| {
            let (register, rest) = line.split_once(": ").or_else(|| line.split_once(" at "))?;
            let is_one = ["RIP", "EIP", "pc", "epc", "PC is", "NIP"].contains(&register.trim());
            let place = rest.split_whitespace().next().filter(|_| is_one)?;
            self.names(place.rsplit(':').next()?)
        };
        let named = named.or_else(|| lines().take_while(|line| !begins_stack(line)).find_map(pc));
        let mut named = named.unwrap_or_default();
        let stack: Vec<&str> = lines()
            .skip_while(|line| !begins_stack(line))
            .skip(1)
            .take_while(|line| frame(line).is_some() || line.starts_with('<') || pc(line).is_some())
            .collect();
        // Whoever calls a bad pointer has pushed the address on top of the stack, but no frame pointer.
        let is_bad_call = |line: &str| line.starts_with("RIP: ") && pc(line).is_none();
        if named.is_empty() && lines().any(is_bad_call) {
            named = stack.iter().find_map(|line| self.names(frame(line)?)).unwrap_or_default();
        }
        let frames = |guesses: bool| {
            let kept = stack.iter().filter(move |line| guesses || !line.contains("? "));
            // Words on the stack that are pointers to functions are no return addresses.
            let kept = kept.filter(|line| !line.contains("+0x0/"));
            kept.filter_map(|line| self.names(frame(line)?)).flatten().collect::<Vec<_>>()
        };
        // Without frame pointers all frames are guesses, and some are left from earlier calls.
        let sure = frames(false);
        // A task may block in one function for many callers.
        let is_one = sure.is_empty() || self.kind == TroubleKind::Hung;
        let most = if is_one { 1 } else { MOST };
        let mut frames = if sure.is_empty() { frames(true) } else { sure };
        if let Some(outermost) = named.last() {
            // What comes before it on the stack reports.
            let last = frames.iter().rposition(|frame| frame == outermost);
            frames.drain(..last.map_or(0, |last| last + 1));
        }
        let mut found: Vec<String> = Vec::new();
        for name in named.iter().chain(&frames).filter(|name| !is_any(name, HELPERS)) {
            if found.len() == most || is_any(name, ENTRIES) && !found.is_empty() {
                break;
            }
            if found.last() != Some(name) {
                found.push(name.clone());
            }
        }
        if found.is_empty() { named } else { found }
    }

    /// The function of a place, `f+0x1/0x2`, after those that the compiler put into it there.
    fn names(&self, place: &str) -> Option<Vec<String>> {
        let function = function(place)?;
        let mut names = self.inlined.get(self::place(place)?).cloned().unwrap_or_default();
        names.push(function);
        Some(names)
    }

    /// The subject of a bug report.
    pub fn title(&self) -> String {
        let place = match self.functions().first() {
            Some(function) => format!(" in {function}"),
            None => String::new(),
        };
        let at = self.source().map_or(String::new(), |at| format!(" at {at}"));
        format!("{}{place}{at}", self.what())
    }

    /// The source line that the kernel names. The line of a helper tells its warnings apart.
    fn source(&self) -> Option<&str> {
        let is_source = |word: &&str| word.contains(".c:") || word.contains(".h:");
        let at = self.line.split_whitespace().find(is_source)?;
        let at = at.strip_suffix("()!").and_then(|at| at.rsplit_once('/')).map_or(at, |at| at.0);
        Some(at.trim_end_matches('!'))
    }

    /// A name for the complaints that have one cause; a good name for a directory.
    pub fn group(&self) -> String {
        let functions = self.functions();
        let place = if functions.is_empty() {
            String::new()
        } else {
            format!(" in {}", functions.join(" "))
        };
        // A function may warn of several things.
        let line = self.source().and_then(|at| at.rsplit_once(':'));
        let line = line.map_or(String::new(), |(_, line)| format!(" {line}"));
        slug(&format!("{}{place}{line}", words(&self.what())))
    }

    /// The kind of complaint in words, without a place.
    fn what(&self) -> String {
        let line = self.line.trim_start_matches("[ ").trim_end_matches(" ]");
        let short = |line: &str, ends: &[&str]| {
            let end = ends.iter().filter_map(|end| line.find(end)).min();
            line[..end.unwrap_or(line.len())].trim_end_matches(['.', '!', ':']).to_owned()
        };
        match self.kind {
            TroubleKind::Memory => "out of memory".into(),
            TroubleKind::Hung if line.starts_with("INFO: task ") => "task blocked".into(),
            TroubleKind::Warning if line.starts_with("WARNING: ") => "WARNING".into(),
            TroubleKind::Panic => match line.rsplit_once(" at addr 0x") {
                Some((_, address)) => fault(address.split(',').next().unwrap_or_default()),
                None => {
                    format!("panic: {}", line.trim_start_matches("Kernel panic - not syncing: "))
                }
            },
            TroubleKind::Sanitizer => {
                let what = short(line.trim_start_matches("BUG: "), &[" in ", " (see ", " 0x"]);
                let what = match what.split_once("): ") {
                    Some((_, damage)) => format!("slab: {damage}"),
                    None => what,
                };
                let access = ["Read", "Write"].into_iter().find(|access| {
                    let begins =
                        |line: &String| message(line).starts_with(&format!("{access} of size "));
                    self.text.iter().any(begins)
                });
                access.map_or(what.clone(), |access| format!("{what} {access}"))
            }
            _ if line.starts_with("BUG: failure at ") => "kernel BUG".into(),
            _ => {
                const NAMES: &[&str] =
                    &["watchdog: ", "rcu: ", "NMI ", "BUG: ", "INFO: ", "WARNING: ", "Oops: "];
                let line =
                    NAMES.iter().fold(line, |line, name| line.strip_prefix(name).unwrap_or(line));
                short(line, &[" at ", " in ", " on CPU", " for ", " - ", ": ", ", ", " ["])
            }
        }
    }
}

/// A fault of User-Mode Linux, by the address.
fn fault(address: &str) -> String {
    let address = u64::from_str_radix(address, 16).unwrap_or(u64::MAX);
    if address < 4096 { "NULL pointer dereference".into() } else { "page fault".into() }
}

fn begins_stack(line: &str) -> bool {
    line.eq_ignore_ascii_case("Call Trace:") || line == "Backtrace:"
}

/// The place of a stack frame, ` [<60012345>] ? f+0x1/0x2 [module]`.
fn frame(line: &str) -> Option<&str> {
    let rest = match line.strip_prefix("[<") {
        Some(rest) => rest.split_once(">]")?.1,
        None => line,
    };
    let rest = rest.trim_start();
    let place = rest.strip_prefix("? ").unwrap_or(rest).split_whitespace().next()?;
    function(place).map(|_| place)
}

/// The place that a line names, `f+0x1/0x2`.
pub fn place(line: &str) -> Option<&str> {
    let word = line.split_whitespace().find(|word| word.contains("+0x") && word.contains("/0x"))?;
    Some(word.rsplit(':').next()?.trim_end_matches([',', ')']))
}

/// The name in `name+0x1/0x2`, without what the compiler appended.
fn function(word: &str) -> Option<String> {
    let word = word.split_whitespace().next()?;
    let (name, rest) = word.split_once("+0x")?;
    let is_name = !name.is_empty() && rest.contains("/0x") && !name.contains('(');
    is_name.then(|| name.split('.').next().unwrap_or(name).to_owned())
}

fn is_any(name: &str, patterns: &str) -> bool {
    let name = name.trim_start_matches('_');
    patterns.split_whitespace().any(|pattern| match pattern.split_once('*') {
        Some((first, last)) => name.strip_prefix(first).is_some_and(|rest| rest.contains(last)),
        None => name == pattern,
    })
}

/// The words that have no digits.
pub fn words(text: &str) -> String {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    let words =
        words.filter(|word| !word.is_empty() && !word.contains(|c: char| c.is_ascii_digit()));
    words.take(8).collect::<Vec<_>>().join(" ")
}

pub fn slug(text: &str) -> String {
    let text: String =
        text.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' }).collect();
    text.chars().take(80).collect()
}
