//! Targets that are like another one. This is resolved in the list itself, before its keys are read.

use toml::{Table, Value};

/// The keys that no other target gets.
const OWN: &[&str] = &["default", "like", "name", "without"];

/// Gives each target with the key `like` the keys of that earlier target. Its own keys win, and
/// `without` lists keys that it does not get. Instead of a list, a key can have the changes to the
/// other target's list: `add` and `remove`.
pub fn resolve(targets: &mut [Value]) -> Result<(), String> {
    for index in 0..targets.len() {
        let (earlier, rest) = targets.split_at_mut(index);
        let Some(Value::Table(target)) = rest.first_mut() else { continue };
        let Some(like) = target.remove("like") else { continue };
        let number = index + 1;
        let name = target.get("name").and_then(Value::as_str);
        let place =
            name.map_or(format!("target number {number}"), |name| format!("target `{name}`"));
        let is_it = |other: &&Value| other.get("name") == Some(&like);
        let base = earlier.iter().find(is_it).and_then(Value::as_table);
        let base =
            base.ok_or_else(|| format!("{place}: key `like`: no earlier target is {like}"))?;
        inherit(target, base).map_err(|why| format!("{place}: {why}"))?;
    }
    Ok(())
}

fn inherit(target: &mut Table, base: &Table) -> Result<(), String> {
    let without = match target.remove("without") {
        None => Vec::new(),
        Some(value) => words(&value).ok_or("key `without`: must list keys")?,
    };
    if let Some(key) = without.iter().find(|key| !base.contains_key(*key)) {
        return Err(format!("key `without`: the other target has no `{key}`"));
    }
    for (key, theirs) in base {
        if OWN.contains(&key.as_str()) || without.contains(key) {
            continue;
        }
        match target.get_mut(key) {
            None => drop(target.insert(key.clone(), theirs.clone())),
            Some(Value::Table(changes)) if theirs.is_array() => {
                let list = changed(changes, theirs).map_err(|why| format!("key `{key}`: {why}"))?;
                target.insert(key.clone(), list);
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// Applies `add` and `remove` to a list.
fn changed(changes: &Table, theirs: &Value) -> Result<Value, String> {
    if let Some(key) = changes.keys().find(|key| !["add", "remove"].contains(&key.as_str())) {
        return Err(format!("`{key}` is neither `add` nor `remove`"));
    }
    let of = |key| changes.get(key).map_or(Some(Vec::new()), words);
    let lists = (words(theirs), of("add"), of("remove"));
    let (Some(mut list), Some(add), Some(remove)) = lists else {
        return Err("must list words".into());
    };
    if let Some(word) = remove.iter().find(|word| !list.contains(word)) {
        return Err(format!("the other target has no `{word}` to remove"));
    }
    if let Some(word) = add.iter().find(|word| list.contains(word)) {
        return Err(format!("the other target has `{word}` already"));
    }
    list.retain(|word| !remove.contains(word));
    list.extend(add);
    Ok(list.into())
}

fn words(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|word| word.as_str().map(String::from)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(second: &str) -> Result<Table, String> {
        let text = format!(
            "[[target]]\nname = 'a'\ndefault = true\nmemory = 1\nconfig = ['x', 'y']\n\
             [[target]]\nname = 'b'\nlike = 'a'\n{second}"
        );
        let mut table: Table = text.parse().expect("TOML");
        let Some(Value::Array(mut targets)) = table.remove("target") else { panic!("no list") };
        resolve(&mut targets)?;
        let Some(Value::Table(target)) = targets.pop() else { panic!("no table") };
        Ok(target)
    }

    #[test]
    fn a_target_gets_what_it_does_not_set() {
        let same = resolved("").expect("resolved");
        assert_eq!(same.to_string(), "config = [\"x\", \"y\"]\nmemory = 1\nname = \"b\"\n");
        let own = resolved("memory = 2\nconfig = ['z']").expect("resolved");
        assert_eq!(own.to_string(), "config = [\"z\"]\nmemory = 2\nname = \"b\"\n");
        let less = resolved("without = ['config']").expect("resolved");
        assert_eq!(less.to_string(), "memory = 1\nname = \"b\"\n");
        let changed = resolved("config = { add = ['z'], remove = ['x'] }").expect("resolved");
        assert_eq!(words(&changed["config"]).expect("words"), ["y", "z"]);
    }

    #[test]
    fn mistakes_are_named() {
        for (second, why) in [
            ("without = ['none']", "target `b`: key `without`: the other target has no `none`"),
            (
                "config = { remove = ['z'] }",
                "target `b`: key `config`: the other target has no `z`",
            ),
            ("config = { add = ['x'] }", "the other target has `x` already"),
            ("config = { less = ['x'] }", "`less` is neither `add` nor `remove`"),
        ] {
            let error = resolved(second).expect_err("refused");
            assert!(error.contains(why), "{error}");
        }
        let mut targets = vec![Value::Table("name = 'a'\nlike = 'b'".parse().expect("TOML"))];
        let why = resolve(&mut targets).expect_err("refused");
        assert_eq!(why, "target `a`: key `like`: no earlier target is \"b\"");
    }
}
